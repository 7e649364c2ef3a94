"""Two robots are taught half of the classes each and merged: how good, beside one taught all?

    VERSE_DATA=… python benchmarks/merge.py [SEEDS [SET …]]

Classes are dealt out at random; each robot is taught its own class by class, video by video, each
frame once. One robot is taught all of them the same way. Accuracy on all test frames, the mean over
seeds and the largest loss of any seed; "statistics alone" is the learner with weight=0, which must
be equal but for rounding.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import verse
from verse import StreamClassifier, streams
from verse.experiments.prepare import Prepared, prepare
from verse.experiments.run import Run

SETS: dict[str, dict[str, Any]] = {
    "eth80": {"holdout": "last:3", "thin": 2},
    "asl": {"holdout": "last:1", "thin": 40},
}


def teach(ready: Prepared, rows: Any, seed: int, settings: dict[str, Any]) -> StreamClassifier:
    """One robot, taught these frames in the order of the stream."""
    robot = StreamClassifier(backbone=ready.backbone, seed=seed, settings=settings)
    for i in rows:
        robot.learn_feature(ready.train[np.array([i])][0].clone(), int(ready.train.y[i]))
    return robot


def accuracy(ready: Prepared, robot: StreamClassifier) -> float:
    """On all test frames."""
    answers = robot.learner.predict_many(ready.test[np.arange(len(ready.test))])
    labels = [robot.labels.name(number) for number in answers if number is not None]
    return float(np.mean(np.array(labels) == ready.test.y))


def compare(ready: Prepared, seed: int, settings: dict[str, Any]) -> dict[str, float]:
    """One deal of the classes."""
    frames, y = ready.dataset.train, ready.train.y
    index = streams.order("class-instance", y, ready.train.videos, frames.frames, seed)
    classes = np.random.default_rng(seed).permutation(np.unique(y))
    first = np.isin(y[index], classes[: len(classes) // 2])
    a = teach(ready, index[first], seed, settings)
    b = teach(ready, index[~first], seed + 1000, settings)
    one = teach(ready, index, seed, settings)
    began = time.perf_counter()
    merged = verse.merge(a, b)
    seconds = time.perf_counter() - began
    untrained = verse.merge(a, b, steps=0)
    return {
        "one": accuracy(ready, one),
        "merged": accuracy(ready, merged),
        "no steps": accuracy(ready, untrained),
        "seconds": seconds,
    }


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    print("| set | frames | learner | one robot | merged | worst seed | without steps | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name in sys.argv[2:] or SETS:
        ready = prepare(Run(f"folder:{name}", **SETS[name]))
        for learner, settings in (("verse-joint", {}), ("statistics alone", {"weight": 0.0})):
            rows = [compare(ready, seed, settings) for seed in seeds]
            mean = {key: np.mean([row[key] for row in rows]) for key in rows[0]}
            worst = min(row["merged"] - row["one"] for row in rows)
            print(
                f"| {name} | {len(ready.train)} | {learner} | {mean['one']:.4f} | "
                f"{mean['merged']:.4f} | {worst:+.4f} | {mean['no steps']:.4f} | "
                f"{mean['seconds']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
