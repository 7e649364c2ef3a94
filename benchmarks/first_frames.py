"""How many frames does a class need? Two categories of eth80, one object each, as by a camera.

    VERSE_DATA=… python benchmarks/first_frames.py [--at SPLIT] [LEARNER …]

Teaches k frames of one object of a category, then k of one of another, and asks about all frames
of other objects of both: validation videos, so that no test video is looked at. Mean accuracy over
ten pairs of categories.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from verse import learners, memory
from verse.experiments.execute import prepare
from verse.experiments.run import Run

FRAMES = (1, 3, 10, 20)
PAIRS, PER_CLASS = 10, 20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--at", default="grid")
    parser.add_argument("learners", nargs="*")
    given = parser.parse_args()
    run = Run("folder:eth80", holdout="last:3", thin=2, validation="last:2", at=given.at)
    ready = prepare(run)
    train, test = ready.train, ready.test
    pairs = list(itertools.combinations(range(len(ready.dataset.classes)), 2))
    np.random.default_rng(0).shuffle(pairs)
    print("| learner | " + " | ".join(f"{k} frames" for k in FRAMES) + " |")
    print("|---|" + "---|" * len(FRAMES))
    for name in given.learners or ("verse", "verse-joint", "tinyer", "slda"):
        row = []
        for k in FRAMES:
            right = []
            for pair in pairs[:PAIRS]:
                store = memory.get("class-balanced")(per_class=PER_CLASS, seed=0)
                learner = learners.build(name, ready.backbone.F, store, seed=0)
                for label in pair:
                    for i in np.flatnonzero(train.y == label)[:k]:
                        learner.learn_one(train[np.array([i])][0], int(label))
                asked = np.flatnonzero(np.isin(test.y, pair))
                answers = np.array(learner.predict_many(test[asked]))
                right.append(float((answers == test.y[asked]).mean()))
            row.append(f"{np.mean(right):.3f}")
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
