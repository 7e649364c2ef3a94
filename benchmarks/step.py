"""One VERSE step on features: against the textbook step and against the machine's limit."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as nn_F
from textbook import TextbookVERSE
from timing import alternate, ratio, summary
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from verse import backbones
from verse.backbones import Plastic
from verse.learners import VERSE
from verse.memory import Reservoir

CLASSES, STORED = 10, 100


def features(F: Plastic, n: int = STORED) -> Tensor:
    return torch.randn(n, *F.z_shape, generator=torch.Generator().manual_seed(0)).relu()


def verse_learner(F: Plastic, Z: Tensor) -> VERSE:
    learner = VERSE(F, Reservoir(2 * STORED))
    for y in range(CLASSES):
        learner.learn_one(Z[y], y)
    for t in range(CLASSES, len(Z)):
        learner.memory.add(learner._stored(Z[t])[0], t % CLASSES)
    return learner


def textbook_learner(F: Plastic, Z: Tensor) -> TextbookVERSE:
    plain = copy.deepcopy(F)
    plain.head.n = CLASSES
    plain.head.weight.data.normal_(0, 0.02, generator=torch.Generator().manual_seed(0))
    learner = TextbookVERSE(plain, capacity=2 * STORED)
    learner.memory = [(z, t % CLASSES) for t, z in enumerate(Z)]
    return learner


def needed_flops(F: Plastic, Z: Tensor) -> float:
    """Operations of one step by the definition of a convolution, counted by torch."""
    learner = textbook_learner(F, Z)
    with FlopCounterMode(display=False) as counter:
        learner.learn_one(Z[0], 0)
    return float(counter.get_total_flops())


def library_work(F: Plastic) -> dict[str, tuple[Any, float]]:
    """The largest convolution of F, forward and backward, in every form the libraries offer:
    name → (work, FLOPs)."""
    convs = [m for m in F.body.modules() if isinstance(m, nn.Conv2d) and m.groups == 1]
    if not convs:
        d = F.head.d
        x, w = torch.randn(512, d), torch.randn(512, d)
        return {"matrix product": (lambda: x @ w.t(), 2.0 * 512 * 512 * d)}
    conv = max(convs, key=lambda m: m.weight.numel())
    n, (h, w) = 32, F.z_shape[1:]
    works = {}
    flops = 3 * 2.0 * n * h * w * conv.weight.numel()
    for name, form in (("NCHW", torch.contiguous_format), ("NHWC", torch.channels_last)):
        x = torch.randn(n, conv.in_channels, h, w).to(memory_format=form).requires_grad_()
        weight = conv.weight.detach().clone().to(memory_format=form).requires_grad_()

        def work(x=x, weight=weight, padding=conv.padding) -> None:
            y = nn_F.conv2d(x, weight, padding=padding)
            torch.autograd.grad(y, (x, weight), y.detach())

        works[f"convolution {name}"] = (work, flops)
    if conv.kernel_size == (1, 1):
        rows = torch.randn(n * h * w, conv.in_channels).requires_grad_()
        matrix = torch.randn(conv.out_channels, conv.in_channels).requires_grad_()

        def product() -> None:
            y = nn_F.linear(rows, matrix)
            torch.autograd.grad(y, (rows, matrix), y.detach())

        works["matrix product"] = (product, flops)
    return works


def measure(name: str, at: str | None, *, precision: str, rounds: int) -> dict[str, Any]:
    """Ours, the textbook's and the library's own rate in turns."""
    if name == "light":
        F = backbones.identity(512).F
    else:
        F = backbones.build(name, at=at, weights="random", precision=precision).F
    plain = F if F.precision == "float32" else copy.deepcopy(F)
    Z = features(F)
    ours, textbook = verse_learner(F, Z), textbook_learner(plain, Z)
    library = library_work(F)
    turn = iter(range(10**9))
    repeat = 20 if name == "light" else 1

    def learn(learner: Any) -> None:
        for _ in range(repeat):
            t = next(turn)
            learner.learn_one(Z[t % len(Z)], t % CLASSES)

    works: dict[str, Any] = {"verse": lambda: learn(ours), "textbook": lambda: learn(textbook)}
    works |= {form: work for form, (work, _) in library.items()}
    times = alternate(works, rounds)
    times = {k: [s / repeat for s in v] if k in ("verse", "textbook") else v
             for k, v in times.items()}  # fmt: skip
    flops = needed_flops(F, Z)
    # the machine's limit in a round: the needed operations at the best rate of that round
    limits = [
        flops / max(count / times[form][i] for form, (_, count) in library.items())
        for i in range(rounds)
    ]
    speedup, limit = ratio(times["textbook"], times["verse"]), ratio(limits, times["verse"])
    return {
        "precision": F.precision,
        "speedup_vs_textbook": speedup["median"],
        "speedup_spread": [speedup["quartile_low"], speedup["quartile_high"]],
        "limit_ratio": limit["median"],
        "limit_spread": [limit["quartile_low"], limit["quartile_high"]],
        "verse": summary(times["verse"]),
        "textbook": summary(times["textbook"]),
        "limit": summary(limits),
        "gflop": flops / 1e9,
        "library_gflops": {
            form: count / 1e9 / sorted(times[form])[rounds // 2]
            for form, (_, count) in library.items()
        },
    }
