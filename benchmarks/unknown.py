"""How well does `ask` tell what was never taught? The first table of docs/trust.md.

    VERSE_DATA=… python -m benchmarks.unknown [--held] [--keep FILE] [SET …]

A third of the classes is never taught. Of each other class 3, 10, 30 or all frames of the training
videos are taught, in random order, or with --held video by video, as a person holds things before a
camera. Known frames are the validation videos of the taught classes, unknown frames those of the
others; test videos are not looked at. Mean over five seeds. With --keep each trial is added to FILE
as one line of JSON, and those that are in it already are not repeated.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from benchmarks.default_choice import SETS
from verse import StreamClassifier
from verse.experiments.prepare import Prepared, prepare
from verse.experiments.run import Run
from verse.novelty import measure_novelty

SAMPLES = (3, 10, 30, 0)  # of a class; 0: all
SEEDS = range(5)
MOST_ASKED = 1000  # frames of each kind that are asked about


@dataclass(frozen=True)
class Row:
    """Areas under the ROC curve, and shares refused at the default threshold."""

    novelty: float
    softmax: float
    energy: float
    mahalanobis: float
    known_refused: float
    unknown_refused: float
    at_95: float
    """Unknown frames refused when exactly 95 % of the known ones are accepted."""


def auroc(known: Tensor, unknown: Tensor) -> float:
    """The probability that an unknown frame scores higher than a known one."""
    ranks = rankdata(torch.cat((known, unknown)).numpy())[len(known) :]
    return float((ranks.mean() - (len(unknown) + 1) / 2) / len(known))


def hold_videos(
    ready: Prepared, rows: np.ndarray[tuple[int], np.dtype[np.intp]], random: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The rows video by video in random order, each in its order of time."""
    pairs = np.stack((ready.train.y[rows], ready.train.videos[rows]), 1)
    _, video = np.unique(pairs, axis=0, return_inverse=True)
    turn = random.permutation(video.max() + 1)
    return rows[np.lexsort((rows, turn[video.ravel()]))]


def try_once(ready: Prepared, samples: int, seed: int, held: bool) -> Row:
    random, y = np.random.default_rng([seed, samples]), ready.train.y
    classes = random.permutation(np.unique(y))
    taught = classes[round(len(classes) / 3) :]
    rows = [random.permutation(np.flatnonzero(y == c))[: samples or None] for c in taught]
    classifier = StreamClassifier(backbone=ready.backbone, seed=seed)
    stream = random.permutation(np.concatenate(rows))
    for i in hold_videos(ready, stream, random) if held else stream:
        classifier.learn_feature(ready.train[np.array([i])][0], int(y[i]))

    def score(asked: np.ndarray[tuple[int], np.dtype[np.intp]]) -> tuple[Tensor, ...]:
        Z = ready.test[np.sort(random.permutation(asked)[:MOST_ASKED])]
        learner = classifier.learner
        measures = measure_novelty(learner, Z)
        logits = learner.logits(learner.F.stored(Z)).float()
        novelty = classifier.novelty.judge(measures, refused=classifier.refused)
        softmax, energy = -torch.softmax(logits, 1).max(1).values, -torch.logsumexp(logits, 1)
        return novelty, softmax, energy, measures.rows[:, 0]

    known = score(np.flatnonzero(np.isin(ready.test.y, taught)))
    unknown = score(np.flatnonzero(~np.isin(ready.test.y, taught)))
    novelty, softmax, energy, mahalanobis = map(auroc, known, unknown)

    def refused(scores: tuple[Tensor, ...], limit: float) -> float:
        return float((scores[0] > limit).float().mean())

    accepting = float(torch.quantile(known[0], 0.95))
    return Row(
        novelty,
        softmax,
        energy,
        mahalanobis,
        refused(known, 1.0),
        refused(unknown, 1.0),
        refused(unknown, accepting),
    )


class Kept:
    """Trials in a file, one line each; without a file nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        trials = map(json.loads, lines)
        self.rows = {tuple(trial["what"]): Row(**trial["found"]) for trial in trials}

    def add(self, what: tuple[str, int, int, bool], row: Row) -> None:
        self.rows[what] = row
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps({"what": what, "found": asdict(row)}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="SET", default=list(SETS))
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    print(
        "| data | taught | novelty | softmax | energy | Mahalanobis | known refused "
        "| unknown refused | at 95 % known |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    kept, held = Kept(options.keep), options.held
    for name in options.names:
        ready: Prepared | None = None
        for samples in SAMPLES:
            rows = []
            for seed in SEEDS:
                what = (name, samples, seed, held)
                if what not in kept.rows:
                    ready = ready or prepare(Run(f"folder:{name}", **SETS[name]))
                    kept.add(what, try_once(ready, samples, seed, held))
                rows.append(astuple(kept.rows[what]))
            means = " | ".join(f"{mean:.3f}" for mean in np.mean(rows, 0))
            print(f"| {name} | {samples or 'all'} | {means} |", flush=True)


if __name__ == "__main__":
    main()
