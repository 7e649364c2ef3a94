"""KLDA, ridge (ACIL) and RanPAC beside the code of their authors, which no package has.

Run it with the folder that holds clones of the three repositories; see README.md. All three sides
get features of length one, as ours makes them.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from differences import apart, differing, finish, report, teach, vectors
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from verse.learners import KLDA, RanPAC, Ridge

D, M, CLASSES, SAMPLES = 16, 48, 6, 1200


def load(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw() -> tuple[Tensor, Tensor, Tensor]:
    """Features class by class, their labels, and as many features to ask about."""
    torch.manual_seed(0)
    y = torch.arange(CLASSES).repeat_interleave(SAMPLES // CLASSES)
    means = torch.randn(CLASSES, D)[y]
    Z, asked = (normalize(means + torch.randn(SAMPLES, D)) for _ in range(2))
    return Z, y, asked


def compare(method: str, what: str, mine: Tensor, other: Tensor, limit: float) -> None:
    report(method, what, apart(mine, other), limit)
    report(method, "share of answers that differ", differing(mine, other), 0.0)


def compare_klda(folder: Path) -> None:
    """Theirs inverts the scatter as it is: so does ours without shrinkage, where it has full rank.
    Its score −(h − μ)ᵀ S⁻¹ (h − μ) is 2 / N of ours, but for a constant of the question."""
    Z, y, asked = draw()
    mine = KLDA(vectors(D), M=M, shrinkage=1e-9)
    drawn: Any = mine.expand[1]
    other = load(folder / "KLDA" / "KLDA.py").KLDA(CLASSES, D, M, 1.0, 0, "cpu")
    other.omega, other.b = drawn.weight.t(), drawn.bias
    teach(mine, Z, y)
    for label in range(CLASSES):
        other.batch_update(Z[y == label], label)
    other.fit()
    scores = mine.logits(asked) * 2 / SAMPLES, torch.stack([other.get_logits(z) for z in asked])
    centred = [each - each.mean(1, keepdim=True) for each in scores]
    compare("klda", "scores, no shrinkage", centred[0], centred[1], 1e-4)


def compare_ridge(folder: Path) -> None:
    Z, y, asked = draw()
    module = load(folder / "Analytic-continual-learning" / "analytic" / "AnalyticLinear.py")
    mine = Ridge(vectors(D), ridge=0.1)
    teach(mine, Z, y)
    for rows in (1, 100):
        other = module.RecursiveLinear(D, gamma=0.1)
        for start in range(0, SAMPLES, rows):
            labels = y[start : start + rows]
            other.fit(Z[start : start + rows], one_hot(labels, int(labels.max()) + 1))
        what = f"scores, theirs learns {rows} at a time"
        compare("ridge", what, mine.logits(asked), other(asked), 1e-4)


def compare_ranpac(folder: Path) -> None:
    """Two tasks, with the λ that theirs chooses on the last one. Our h is √(2/M) times theirs, and
    so λ is 2/M times theirs."""
    stub_networks()
    stay_on_processor()
    Z, y, asked = draw()
    drawn: Any = RanPAC(vectors(D), M=M).expand[1]
    layer = SimpleNamespace(weight=nn.Parameter(torch.zeros(CLASSES, M)))
    network = SimpleNamespace(fc=layer, convnet=nn.Identity())
    network.eval = lambda: network
    kind = load(folder / "RanPAC" / "RanPAC.py").Learner
    other = object.__new__(kind)  # its constructor builds a vision transformer
    other._network, other.args = network, {"use_RP": True, "M": M}
    other.total_classnum, other.W_rand = CLASSES, drawn.weight.t() / (2 / M) ** 0.5
    other.Q, other.G = torch.zeros(M, CLASSES), torch.zeros(M, M)
    chosen = []

    def choose(H: Tensor, Y: Tensor) -> float:
        chosen.append(float(kind.optimise_ridge_parameter(other, H, Y)))
        return chosen[-1]

    other.optimise_ridge_parameter = choose
    for task in (y < CLASSES // 2, y >= CLASSES // 2):
        rows = torch.nonzero(task)[:, 0]
        rows = rows[torch.randperm(len(rows))]  # λ is chosen on the last fifth
        other.replace_fc([(None, Z[rows], y[rows])])
    mine = RanPAC(vectors(D), M=M, ridge=chosen[-1] * 2 / M)
    teach(mine, Z, y)
    scores = (asked @ other.W_rand).relu() @ layer.weight.detach().t()
    compare("ranpac", f"scores, λ = {chosen[-1]:g}", mine.logits(asked), scores, 1e-4)


def stub_networks() -> None:
    """Modules of theirs that need more packages; of these only the one-hot labels are used."""
    for name in ("inc_net", "utils", "utils.toolkit"):
        sys.modules[name] = ModuleType(name)
    vars(sys.modules["inc_net"]).update(ResNetCosineIncrementalNet=None, SimpleVitNet=None)
    vars(sys.modules["utils.toolkit"]).update(
        target2onehot=lambda y, n: one_hot(y, n).float(), tensor2numpy=None, accuracy=None
    )


def stay_on_processor() -> None:
    """Their code asks for CUDA by name."""
    move: Any = torch.Tensor.to

    def to(self: Tensor, *where: Any, **how: Any) -> Any:
        return self if how.get("device") == "cuda" else move(self, *where, **how)

    for name, method in (("to", to), ("cuda", lambda self: self)):
        setattr(torch.Tensor, name, method)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for run in (compare_klda, compare_ridge, compare_ranpac):
        run(Path(sys.argv[1]))
    finish()
