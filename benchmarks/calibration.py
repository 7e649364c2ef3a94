"""How far the probabilities of the default learner can be believed, on validation videos.

    VERSE_DATA=… python benchmarks/calibration.py run benchmarks/calibration.jsonl
    python benchmarks/calibration.py show benchmarks/calibration.jsonl
    python benchmarks/calibration.py draw benchmarks/calibration.jsonl reliability.png

``run`` teaches 3, 10, 30 or all random frames of each class and asks about frames of other training
videos. One video of each class is right or wrong as a whole, and a few of them say little: so there
are five draws, and each asks about other videos. ``show`` prints the expected calibration error of
all answers together, in ten bins; ``draw`` how often answers are right where they are so sure. Test
frames are not looked at.
"""

from __future__ import annotations

import json
import sys
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from default_choice import BYTES, SETS

from verse import learners
from verse.configuration import DEFAULT_LEARNER
from verse.experiments.prepare import Prepared, prepare
from verse.experiments.run import Run
from verse.memory import ClassBalanced

SAMPLES = (3, 10, 30, 0)  # of a class; 0: all
DRAWS = range(5)
VIDEOS = {"eth80": 2, "gtsrb": 1, "asl": 1, "gtsrb_full": 0.2, "icub_camera": 1}
"""Videos of a class that are asked about: a number, or a share of them."""


def pick_videos(y: np.ndarray, videos: np.ndarray, count: float, draw: int) -> np.ndarray:
    """Which frames are asked about: of each class the last videos, in the next draw those before
    them, and so on.

    >>> pick_videos(np.zeros(4), np.array([7, 8, 9, 9]), 1, 1).tolist()
    [False, True, False, False]
    """
    asked = np.zeros(len(y), bool)
    for label in np.unique(y):
        own = np.unique(videos[y == label])
        n = ceil(count * len(own)) if count < 1 else int(count)
        end = len(own) - n * (draw % max(1, len(own) // n))
        asked |= np.isin(videos, own[end - n : end]) & (y == label)
    return asked


def measure(ready: Prepared, name: str, samples: int, draw: int) -> dict[str, Any]:
    """Bins of the answers: sum of their probabilities, right ones, all."""
    y = ready.train.y
    asked = pick_videos(y, ready.train.videos, VIDEOS[name], draw)
    random = np.random.default_rng([draw, samples])
    each = [random.permutation(np.flatnonzero(~asked & (y == label))) for label in np.unique(y)]
    shown = random.permutation(np.concatenate([rows[: samples or None] for rows in each]))
    store = ClassBalanced(byte_limit=BYTES, seed=draw)
    learner = learners.build(DEFAULT_LEARNER, ready.backbone.F, store, seed=draw)
    for i in shown:
        learner.learn_one(ready.train[np.array([i])][0].clone(), int(y[i]))
    rows = np.flatnonzero(asked)
    p = learner.predict_proba_many(ready.train[rows]).numpy()
    right = np.array(learner.labels)[p.argmax(1)] == y[rows]
    place = np.minimum((p.max(1) * 10).astype(int), 9)
    values = (p.max(1), right, np.ones(len(right)))
    return {"bins": [np.bincount(place, each, 10).round(2).tolist() for each in values]}


def run(path: Path) -> None:
    held = path.read_text().splitlines() if path.exists() else []
    done = {json.dumps(json.loads(line)["what"]) for line in held}
    with path.open("a") as file:
        for name, split in SETS.items():
            whole = {key: value for key, value in split.items() if key != "validation"}
            ready = prepare(Run(f"folder:{name}", **whole))
            for samples in SAMPLES:
                for draw in DRAWS:
                    what = [name, samples, draw]
                    if json.dumps(what) not in done:
                        found = {"what": what, **measure(ready, name, samples, draw)}
                        file.write(json.dumps(found, separators=(",", ":")) + "\n")
                        file.flush()


def read_bins(path: Path) -> dict[tuple[str, int], np.ndarray]:
    """(data set, samples) → bins of all draws together [3, 10]."""
    total: dict[tuple[str, int], np.ndarray] = {}
    for line in path.read_text().splitlines():
        found = json.loads(line)
        name, samples, _ = found["what"]
        total[name, samples] = total.get((name, samples), 0) + np.array(found["bins"])
    return total


def show(path: Path) -> None:
    print("| | " + " | ".join(str(n or "all") for n in SAMPLES) + " |")
    print("|---|" + "--:|" * len(SAMPLES))
    found = read_bins(path)
    for name in SETS:
        cells = []
        for samples in SAMPLES:
            sure, right, n = found[name, samples]
            error = np.abs(sure - right).sum() / n.sum()
            cells.append(
                f"{right.sum() / n.sum():.3f}, {sure.sum() / n.sum():.3f}, **{error:.3f}**"
            )
        print(f"| {name} | " + " | ".join(cells) + " |")


def draw(path: Path, out: Path) -> None:
    """Reliability: how often answers are right, by how sure they are; a panel for each set."""
    import matplotlib.pyplot as plt

    found = read_bins(path)
    figure, panels = plt.subplots(1, len(SETS), figsize=(14, 3.2), sharey=True)
    for name, panel in zip(SETS, panels, strict=True):
        panel.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for samples in SAMPLES:
            sure, right, n = found[name, samples]
            some = n >= 0.01 * n.sum()  # a point of a few frames says nothing
            label = f"{samples or 'all'} samples a class"
            panel.plot(sure[some] / n[some], right[some] / n[some], "o-", ms=3, label=label)
        panel.set(title=name, xlabel="mean probability of the answer", xlim=(0, 1), ylim=(0, 1))
    panels[0].set_ylabel("share of right answers")
    panels[-1].legend(fontsize=7, loc="lower right")
    figure.tight_layout()
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    command, file = sys.argv[1], Path(sys.argv[2])
    if command == "run":
        run(file)
    elif command == "draw":
        draw(file, Path(sys.argv[3]))
    else:
        show(file)
