"""Our task-based methods beside Avalanche's, at equal settings, on the same samples and weights.

Three stretches of 20 samples of the same three classes, whose centres move; a small network, plain
SGD, one sample a step. See README.md for how to install Avalanche beside the package.
"""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn

# torchvision's binary may lack these operators, and importing it then fails
library = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
warnings.simplefilter("ignore")

from avalanche.benchmarks import tensors_benchmark  # noqa: E402
from avalanche.training import supervised  # noqa: E402
from avalanche.training.plugins import SynapticIntelligencePlugin  # noqa: E402

from verse import learners  # noqa: E402
from verse.memory import Reservoir  # noqa: E402
from verse.network.plastic import Head, Plastic  # noqa: E402
from verse.network.vector import Vector  # noqa: E402

CLASSES, LENGTH, LR = 3, 20, 0.05
torch.manual_seed(0)
BODY = nn.Sequential(nn.Linear(8, 6), nn.Tanh())
STRETCHES = []
for _ in range(3):
    y = torch.arange(LENGTH) % CLASSES
    STRETCHES.append((torch.randn(CLASSES, 8)[y] + 0.3 * torch.randn(LENGTH, 8), y))


def ours(method: str, **settings: object) -> learners.Learner:
    """A learner whose outputs all exist from the start, as Avalanche's do."""
    F = Plastic(copy.deepcopy(BODY), Head(6), z_shape=(8,))
    learner = learners.build(method, F, Reservoir(1000), lr=LR, clip=None, **settings)
    with torch.no_grad():
        for label in range(CLASSES):
            learner.add_label(label)
    return learner


def theirs(method: str, start: Tensor, **settings: object):
    """Avalanche's strategy with the same weights."""
    model = nn.Sequential(copy.deepcopy(BODY), nn.Linear(6, CLASSES))
    nn.utils.vector_to_parameters(start, model.parameters())
    model.requires_grad_(True)
    return getattr(supervised, method)(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=LR),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=1,
        train_epochs=1,
        evaluator=None,
        **settings,
    )


def experiences(*stretches: tuple[Tensor, Tensor]):
    return tensors_benchmark(stretches, stretches, task_labels=[0] * len(stretches)).train_stream


def flat(source: Vector | nn.Module | dict) -> Tensor:
    """Body, then the head's weights, then its biases."""
    if isinstance(source, Vector):
        return laid_out(source, source.data)
    if isinstance(source, nn.Module):
        parts = list(source.parameters())
    else:
        parts = [p.data for p in source.values()]
    return torch.cat([p.detach().reshape(-1) for p in parts])


def laid_out(vector: Vector, values: Tensor) -> Tensor:
    """The same of any values in the layout of a vector."""
    views = vector.layout.views(values)
    parts = [v[:CLASSES] if k.startswith("head") else v for k, v in views.items()]
    return torch.cat([p.detach().reshape(-1) for p in parts])


def put(vector: Vector, values: Tensor) -> None:
    at = 0
    for name, view in vector.layout.views(vector.data).items():
        view = view[:CLASSES] if name.startswith("head") else view
        view.copy_(values[at : at + view.numel()].view(view.shape))
        at += view.numel()


def learn(learner: learners.Learner, stretch: tuple[Tensor, Tensor]) -> None:
    for z, label in zip(*stretch, strict=True):
        learner.learn_one(z, int(label))


def learn_beside(
    learner: learners.Learner, stretch: tuple[Tensor, Tensor], held: tuple[Tensor, Tensor]
) -> None:
    """Learn with a memory that stays as it is: Avalanche's changes between experiences only."""
    for z, label in zip(*held, strict=True):
        learner.memory.add(z, int(label))
    state = {k: v.clone() for k, v in learner.memory.state().items()}
    for z, label in zip(*stretch, strict=True):
        learner.learn_one(z, int(label))
        learner.memory.load_state(state)


def report(method: str, what: str, mine: Tensor, other: Tensor) -> None:
    gap = float((mine - other).norm() / other.norm())
    print(f"{method:6} {what:58} relative difference {gap:.1e}")


def train(strategy, stream) -> None:
    for experience in stream:
        strategy.train(experience, shuffle=False)


def compare_lwf() -> None:
    mine = ours("lwf", alpha=0.5, T=2.0, trigger=f"every:{LENGTH}")
    other = theirs("LwF", flat(mine.theta), alpha=0.5, temperature=2.0)
    train(other, experiences(*STRETCHES))
    for stretch in STRETCHES:
        learn(mine, stretch)
    report("LwF", "weights after 60 samples, 2 triggers", flat(mine.theta), flat(other.model))


def compare_gem() -> None:
    mine = ours("gem", margin=0.5, C=1000, trigger=f"every:{LENGTH}")
    start = flat(mine.theta)
    other = theirs("GEM", start, patterns_per_exp=LENGTH, memory_strength=0.5)
    train(other, experiences(*STRETCHES))
    for stretch in STRETCHES:
        learn(mine, stretch)
    report("GEM", "weights after 60 samples, 2 triggers", flat(mine.theta), flat(other.model))


def compare_agem() -> None:
    """The reference is the first stretch alone, as in Avalanche."""
    mine = ours("agem", C=1000)
    other = theirs("AGEM", flat(mine.theta), patterns_per_exp=LENGTH, sample_size=LENGTH)
    stream = experiences(*STRETCHES[:2])
    train(other, stream[:1])
    put(mine.theta, flat(other.model))
    train(other, stream[1:])
    learn_beside(mine, STRETCHES[1], held=STRETCHES[0])
    report(
        "A-GEM",
        "weights after 20 steps against one reference set",
        flat(mine.theta),
        flat(other.model),
    )


def compare_springs(method: str, name: str, lam: float, importances, **settings: object) -> None:
    """EWC and MAS: importance of the first stretch at its final weights, then 20 anchored steps."""
    mine = ours(method, lam=lam, penalty="explicit", trigger="event", **settings)
    strength = {"EWC": "ewc_lambda", "MAS": "lambda_reg"}[name]
    other = theirs(name, flat(mine.theta), **{strength: lam})
    stream = experiences(*STRETCHES[:2])
    train(other, stream[:1])
    put(mine.theta, flat(other.model))
    mine.lr = 1e-30  # measure only
    learn(mine, STRETCHES[0])
    measured, published = importances(mine, other)
    report(name, "importance of 20 samples at fixed weights", measured, published)
    put(mine.importance, measured)
    mine.anchor.data.copy_(mine.theta.data)
    mine.lr = LR
    train(other, stream[1:])
    learn(mine, STRETCHES[1])
    report(name, f"weights after 20 anchored steps, λ = {lam}", flat(mine.theta), flat(other.model))


def ewc_importance(mine, other) -> tuple[Tensor, Tensor]:
    return flat(mine.fisher), flat(other.plugins[0].importances[0])


def mas_importance(mine, other) -> tuple[Tensor, Tensor]:
    return flat(mine.sensitivity) / LENGTH, flat(other.plugins[0].importance)


def extract_copies(model: nn.Module, target: dict, excluded: set[str]) -> None:
    """Avalanche 0.6.0 keeps views of the live weights on a CPU, so that nothing ever moves."""
    for name, parameter in SynapticIntelligencePlugin.allowed_parameters(model, excluded):
        target[name].data = parameter.detach().flatten().clone()


def compare_si() -> None:
    """Up to the first trigger; see the page on SI for how Avalanche goes on differently."""
    SynapticIntelligencePlugin.extract_weights = staticmethod(extract_copies)
    mine = ours("si", lam=1.0, xi=1e-3, trigger="event")
    other = theirs("SynapticIntelligence", flat(mine.theta), si_lambda=2.0, eps=1e-3)
    train(other, experiences(STRETCHES[0]))
    learn(mine, STRETCHES[0])
    data = other.plugins[0].syn_data
    report("SI", "weights after 20 samples", flat(mine.theta), flat(other.model))
    report("SI", "path integral ω", flat(mine.path), -flat(data["trajectory"]))
    mine.consolidate()
    report("SI", "importance Ω", flat(mine.importance), -flat(data["cum_trajectory"]))


if __name__ == "__main__":
    compare_springs("ewcpp", "EWC", 5.0, ewc_importance, a=1.0, window=LENGTH)
    compare_springs("mas", "MAS", 0.1, mas_importance)
    compare_si()
    compare_lwf()
    compare_gem()
    compare_agem()
