"""A stream that goes on: time per step and resident memory against the number of steps."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from verse import backbones
from verse.learners import VERSE
from verse.memory import ClassBalanced

D, PIECES = 512, 20


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def run(capacity: int, classes: int, steps: int) -> dict[str, Any]:
    learner = VERSE(backbones.identity(D).F, ClassBalanced(capacity))
    generator = torch.Generator().manual_seed(0)
    Z = torch.randn(4096, D, generator=generator)
    labels = np.random.default_rng(0).integers(0, classes, steps)
    for y in range(classes):  # every class first: the head has its size from then on
        learner.learn_one(Z[y % 4096], y)
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


def measure(steps: int) -> dict[str, Any]:
    cases = {
        "capacity 10": run(10, 10, steps),
        "capacity 100,000": run(100_000, 10, steps),
        "1,000 classes": run(1_000, 1_000, max(200, steps // 2)),
    }
    return {
        "slope_bytes_per_step": {k: v["slope_bytes_per_step"] for k, v in cases.items()},
        "last_over_first": {k: v["last_tenth_us"] / v["first_tenth_us"] for k, v in cases.items()},
        "capacity_ratio": cases["capacity 100,000"]["step_us"] / cases["capacity 10"]["step_us"],
        "cases": cases,
    }
