"""VERSE on the grid against VERSE on `head`, in class-instance order, with equal bytes of samples.

    VERSE_DATA=… python benchmarks/grid_or_head.py run benchmarks/grid_or_head.jsonl [SET …]
    python benchmarks/grid_or_head.py show benchmarks/grid_or_head.jsonl

Validation videos, thinned much, since a step on `head` is slow: a stream of about 250 frames. Each
split has the rates that suit it: the paper's on `head`, those of verse-joint's network on the grid.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from default_choice import EVERY, GRID, SETS

from verse import evaluate, learners, streams
from verse.evaluate import Finished
from verse.experiments.prepare import prepare
from verse.experiments.run import Run
from verse.memory import ClassBalanced

THIN = {"eth80": 6, "gtsrb": 30, "asl": 120, "gtsrb_full": 120, "icub_camera": 8}
BYTES = 1_000_000  # 15 maps of `head`, 195 grids
RATES: dict[str, dict[str, Any]] = {"grid": GRID, "head": {}}
SEEDS = range(100, 103)


def run(path: Path, names: list[str]) -> None:
    with path.open("a") as file:
        for name in names:
            for at, rates in RATES.items():
                ready = prepare(Run(f"folder:{name}", **SETS[name] | {"thin": THIN[name]}, at=at))
                for seed in SEEDS:
                    store = ClassBalanced(byte_limit=BYTES, seed=seed)
                    learner = learners.build("verse", ready.backbone.F, store, seed=seed, **rates)
                    y, frames = ready.train.y, ready.dataset.train.frames
                    index = streams.order("class-instance", y, ready.train.videos, frames, seed)
                    train = ready.train.take(index)
                    schedule = streams.Schedule.of(
                        "class-instance", train.y, every=EVERY.get(name, 5)
                    )
                    *_, last = evaluate.stream(learner, train, ready.test, schedule)
                    assert isinstance(last, Finished)
                    alpha, what = last.so_far.alpha, [at, name, seed, len(train)]
                    found = {"mean": round(float(np.mean(alpha)), 4), "final": round(alpha[-1], 4)}
                    file.write(json.dumps({"what": what, **found}) + "\n")
                    file.flush()


def show(path: Path) -> None:
    means: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in path.read_text().splitlines():
        found = json.loads(line)
        at, name, _, frames = found["what"]
        means[f"{name} ({frames} frames)", at].append(found["mean"])
    for (name, at), values in sorted(means.items()):
        print(f"{name:26s} {at:5s} {np.mean(values):.3f}  {values}")


if __name__ == "__main__":
    command, file = sys.argv[1], Path(sys.argv[2])
    run(file, sys.argv[3:] or list(SETS)) if command == "run" else show(file)
