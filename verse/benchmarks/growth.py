"""Streams that go on: time and resident memory against the number of lessons and of classes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from verse import backbones
from verse.benchmarks.timing import once, percentile
from verse.learners import VERSE
from verse.memory import ClassBalanced

D, PIECES = 512, 20
LARGE = 100_000
MANY = (100, 1_000, 10_000)


def resident_bytes() -> int:
    """Of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def run(capacity: int, classes: int, steps: int) -> dict[str, Any]:
    """A stream of ``steps`` lessons through VERSE with a full memory."""
    learner = with_classes(capacity, classes)
    Z = torch.randn(4096, D, generator=torch.Generator().manual_seed(0))
    labels = np.random.default_rng(0).integers(0, classes, steps)
    for t in range(2 * capacity):  # memory is full: what it holds no longer grows by right
        learner.memory.add(Z[t % 4096], t % classes)
    times = np.zeros(steps)  # as long as the stream, so that taking notes takes no memory
    memory: list[tuple[int, int]] = []
    for t in range(steps):
        start = time.perf_counter()
        learner.learn_one(Z[t % 4096], int(labels[t]))
        times[t] = time.perf_counter() - start
        if (t + 1) % max(1, steps // PIECES) == 0:
            memory.append((t + 1, resident_bytes()))
    half = memory[len(memory) // 2 :]
    slope = float(np.polyfit([t for t, _ in half], [b for _, b in half], 1)[0])
    tenth = max(1, steps // 10)
    return {
        "capacity": capacity,
        "classes": classes,
        "steps": steps,
        "step_us": 1e6 * float(np.median(times)),
        "first_tenth_us": 1e6 * float(np.median(times[:tenth])),
        "last_tenth_us": 1e6 * float(np.median(times[-tenth:])),
        "slope_bytes_per_step": slope,
        "resident_mb": memory[-1][1] / 2**20,
        "curve": [[t, b] for t, b in memory],
    }


def with_classes(capacity: int, classes: int) -> VERSE:
    """A learner that has met so many classes: its head has its size from then on."""
    learner = VERSE(backbones.identity(D).F, ClassBalanced(capacity))
    with torch.no_grad():
        for y in range(classes):
            learner.add_label(y)
    return learner


def by_classes() -> dict[str, dict[str, float]]:
    """Number of classes → median microseconds of a step, of an answer, of meeting a class."""
    return {str(n): _with(n) for n in MANY}


def _with(n: int, rounds: int = 20) -> dict[str, float]:
    Z = torch.randn(64, D, generator=torch.Generator().manual_seed(0))
    learner = with_classes(1_000, n)
    for t in range(64):
        learner.memory.add(Z[t], t * n // 64)

    def median_us(work: Callable[[int], object]) -> float:
        return 1e6 * percentile([once(partial(work, t)) for t in range(rounds)], 0.5)

    with torch.no_grad():
        return {
            "step_us": median_us(lambda t: learner.learn_one(Z[t], t)),
            "answer_us": median_us(lambda t: learner.predict_one(Z[t])),
            "new_class_us": median_us(lambda t: learner.add_label(n + t)),
        }


def measure(steps: int) -> dict[str, Any]:
    """Three streams, and what many classes cost."""
    cases = {
        "capacity 10": run(10, 10, steps),
        f"capacity {LARGE:,}": run(LARGE, 10, steps),
        "1,000 classes": run(1_000, 1_000, max(200, steps // 10)),
    }
    classes = by_classes()
    last, before = classes[str(MANY[-1])], classes[str(MANY[-2])]
    return {
        "slope_bytes_per_step": {k: v["slope_bytes_per_step"] for k, v in cases.items()},
        "last_over_first": {k: v["last_tenth_us"] / v["first_tenth_us"] for k, v in cases.items()},
        "capacity_ratio": cases[f"capacity {LARGE:,}"]["step_us"] / cases["capacity 10"]["step_us"],
        "by_classes": classes,
        "ten_times_the_classes": {name: last[name] / before[name] for name in last},
        "cases": cases,
    }
