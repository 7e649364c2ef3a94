"""What should learn? Forms of F for VERSE, with equal bytes of samples.

    VERSE_DATA=… python benchmarks/plastic_choice.py run benchmarks/plastic_choice.jsonl [SET …]
    python benchmarks/plastic_choice.py show benchmarks/plastic_choice.jsonl

On the grid (2 × 2 averaged positions): a linear layer; the pretrained 1 × 1 convolution on the four
positions and a linear layer; a hidden layer of 256 that starts at random. On `head`, the former
default: the same convolution on 7 × 7 positions. Each with four learning rates, in class-instance
order, on validation videos. They are thinned much, since a step on `head` is slow: streams of about
250 frames, and 1 MB of samples (15 maps of `head`, 195 grids). ``run`` adds what the file does not
hold yet.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from default_choice import EVERY, SETS
from torch import Tensor, nn

from verse import evaluate, learners, streams
from verse.backbones.grid import LENGTH, Grid
from verse.evaluate import Finished
from verse.experiments.prepare import Prepared, prepare
from verse.experiments.run import Run
from verse.memory import ClassBalanced
from verse.network.plastic import Head, Plastic

THIN = {"eth80": 6, "gtsrb": 30, "asl": 120, "gtsrb_full": 120, "icub_camera": 8}
BYTES = 1_000_000
FORMS = ("grid, linear", "grid, convolution", "grid, hidden", "head")
RATES = (0.01, 0.03, 0.1, 0.3)
SEEDS = range(100, 103)


class Factor(nn.Module):
    """A number times its input: what the pretrained convolution expects has another length."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, z: Tensor) -> Tensor:
        return z * self.factor


def build_plastic(form: str, grid: Prepared, head: Prepared) -> Plastic:
    """F of that form."""
    own, shape = head.backbone.F, grid.backbone.F.z_shape
    if form == "head":
        return own
    if form == "grid, linear":
        return grid.backbone.F
    if form == "grid, hidden":
        width = int(np.prod(shape))
        torch.manual_seed(0)
        body = nn.Sequential(nn.Flatten(), nn.Linear(width, 256), nn.ReLU())
        return Plastic(body, Head(256), z_shape=shape)
    pool = Grid(own.z_shape, shape[-1])[0]
    maps = head.train[np.arange(0, len(head.train), 20)]
    length = float(pool(maps).flatten(1).norm(dim=1).mean())
    body = nn.Sequential(Factor(length / LENGTH), copy.deepcopy(own.body))
    return Plastic(body, Head(own.head.d), z_shape=shape)


def measure(form: str, rate: float, grid: Prepared, head: Prepared, name: str, seed: int) -> Any:
    """Mean accuracy over the test events, the last of them, and milliseconds a step."""
    ready = head if form == "head" else grid
    store = ClassBalanced(byte_limit=BYTES, seed=seed)
    rates = {"alpha": rate / 2, "beta": rate, "lam": 0.03, "clip": 1.0}
    F = build_plastic(form, grid, head)
    learner = learners.build("verse", F, store, seed=seed, **rates)
    frames = ready.dataset.train.frames
    index = streams.order("class-instance", ready.train.y, ready.train.videos, frames, seed)
    train = ready.train.take(index)
    schedule = streams.Schedule.of("class-instance", train.y, every=EVERY.get(name, 5))
    start = time.process_time()
    *_, last = evaluate.stream(learner, train, ready.test, schedule)
    assert isinstance(last, Finished)
    alpha = last.so_far.alpha
    return {
        "mean": round(float(np.mean(alpha)), 4),
        "final": round(alpha[-1], 4),
        "frames": len(train),
        "ms": round(1e3 * (time.process_time() - start) / len(train), 2),
    }


def run(path: Path, names: list[str]) -> None:
    held = path.read_text().splitlines() if path.exists() else []
    done = {json.dumps(json.loads(line)["what"]) for line in held}
    with path.open("a") as file:
        for name in names:
            split = SETS[name] | {"thin": THIN[name]}
            grid, head = (prepare(Run(f"folder:{name}", **split, at=at)) for at in ("grid", "head"))
            for what in [[f, r, name, s] for f in FORMS for r in RATES for s in SEEDS]:
                if json.dumps(what) not in done:
                    form, rate, _, seed = what
                    found = measure(form, rate, grid, head, name, seed)
                    file.write(json.dumps({"what": what, **found}) + "\n")
                    file.flush()


def show(path: Path) -> None:
    """Each form with the rate that is best in the mean over all sets."""
    means: dict[tuple[str, float], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    cost: dict[str, list[float]] = defaultdict(list)
    for line in path.read_text().splitlines():
        found = json.loads(line)
        form, rate, name, _ = found["what"]
        means[form, rate][name].append(found["mean"])
        cost[form].append(found["ms"])
    for form in FORMS:
        rates = {r: np.mean([np.mean(v) for v in means[form, r].values()]) for r in RATES}
        best = max(rates, key=lambda r: rates[r])
        of_sets = "  ".join(f"{n} {np.mean(v):.3f}" for n, v in sorted(means[form, best].items()))
        print(f"{form:18s} rate {best}: {of_sets}; mean {rates[best]:.3f}")
        print(f"{'':18s} {np.median(cost[form]):.1f} ms a step; all rates", end=" ")
        print(", ".join(f"{r}: {m:.3f}" for r, m in rates.items()))


if __name__ == "__main__":
    command, file = sys.argv[1], Path(sys.argv[2])
    run(file, sys.argv[3:] or list(SETS)) if command == "run" else show(file)
