"""One VERSE step on features: against the textbook step and against the machine's limit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as nn_F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from verse.backbones import Plastic
from verse.benchmarks import cases
from verse.benchmarks.cases import CLASSES, STORED
from verse.benchmarks.textbook import TextbookVERSE
from verse.benchmarks.timing import alternate, ratio, summary

Work = tuple[Callable[[], object], float]


def textbook_learner(F: Plastic, Z: Tensor) -> TextbookVERSE:
    """The plain code with as many classes and as full a memory."""
    plain = copy.deepcopy(F)
    plain.head.n = CLASSES
    plain.head.weight.data.normal_(0, 0.02, generator=torch.Generator().manual_seed(0))
    learner = TextbookVERSE(plain, capacity=2 * STORED)
    learner.memory = [(z, t % CLASSES) for t, z in enumerate(Z)]
    return learner


def count_flops(F: Plastic, Z: Tensor) -> float:
    """Operations of one step by the definition of a convolution, counted by torch."""
    learner = textbook_learner(F, Z)
    with FlopCounterMode(display=False) as counter:
        learner.learn_one(Z[0], 0)
    return float(counter.get_total_flops())


def library_work(F: Plastic) -> dict[str, Work]:
    """The largest layer of F in every form the libraries offer: name → (work, FLOPs)."""
    convs = [m for m in F.body.modules() if isinstance(m, nn.Conv2d) and m.groups == 1]
    if not convs:
        return _linear_work(F.head.d)
    conv = max(convs, key=lambda m: m.weight.numel())
    n, (h, w) = 32, F.z_shape[1:]
    works: dict[str, Work] = {}
    flops = 3 * 2.0 * n * h * w * conv.weight.numel()
    for name, form in (("NCHW", torch.contiguous_format), ("NHWC", torch.channels_last)):
        x = torch.randn(n, conv.in_channels, h, w).to(memory_format=form).requires_grad_()
        weight = conv.weight.detach().clone().to(memory_format=form).requires_grad_()

        def convolve(x: Tensor = x, weight: Tensor = weight, padding: Any = conv.padding) -> None:
            y = nn_F.conv2d(x, weight, padding=padding)
            torch.autograd.grad(y, (x, weight), y.detach())

        works[f"convolution {name}"] = (convolve, flops)
    if conv.kernel_size == (1, 1):
        rows = torch.randn(n * h * w, conv.in_channels).requires_grad_()
        matrix = torch.randn(conv.out_channels, conv.in_channels).requires_grad_()

        def multiply() -> None:
            y = nn_F.linear(rows, matrix)
            torch.autograd.grad(y, (rows, matrix), y.detach())

        works["matrix product"] = (multiply, flops)
    return works


def _linear_work(d: int) -> dict[str, Work]:
    """The scores of all samples of a step: the products of a linear F have this shape."""
    x, w = torch.randn(49, d), torch.randn(CLASSES, d)
    out = torch.empty(49, CLASSES)

    def multiply() -> None:
        for _ in range(20):  # so that a clock can tell
            torch.mm(x, w.t(), out=out)

    return {"matrix product": (multiply, 20 * 2.0 * 49 * CLASSES * d)}


def measure(case: str, *, precision: str, rounds: int) -> dict[str, Any]:
    """Ours, the textbook's and the library's own rate in turns."""
    F = cases.build_case(case, precision=precision).F
    Z = cases.features(F)
    ours, textbook = cases.verse_learner(F, Z), textbook_learner(F, Z)
    library = library_work(F)
    turn = iter(range(10**9))
    repeat = 1 if any(True for _ in F.body.parameters()) else 20

    def learn(learner: Any) -> None:
        for _ in range(repeat):
            t = next(turn)
            learner.learn_one(Z[t % len(Z)], t % CLASSES)

    works: dict[str, Callable[[], object]] = {
        "verse": lambda: learn(ours),
        "textbook": lambda: learn(textbook),
    }
    works |= {form: work for form, (work, _) in library.items()}
    times = alternate(works, rounds)
    for name in ("verse", "textbook"):
        times[name] = [seconds / repeat for seconds in times[name]]
    flops = count_flops(F, Z)
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
