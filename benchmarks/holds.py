"""Is another thing of a class known after one hold of each class? A table of docs/trust.md.

    VERSE_DATA=… python -m benchmarks.holds [--seeds 4] [SET …]

Of 2, 3 and 5 classes, one, two or three training videos each are shown one after the other, 3 to 60
frames of a video, every one, every second or every fourth. Then validation videos of these classes
and of all others are asked about; test videos are not looked at. "page" is the film of the test of
the page: seven objects of a class in one hold, at every speed of the machine, until 16 samples of
each class are taught; then three other objects of each class (the least over speeds and seeds).
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
from torch import Tensor

from benchmarks.default_choice import SETS
from verse import StreamClassifier
from verse.experiments.prepare import Prepared, prepare
from verse.experiments.run import Run
from verse.novelty import measure_novelty

THIN = {"eth80": 1, "icub_camera": 1, "asl": 20, "gtsrb": 2}
FRAMES, MOST, ASKED = (3, 8, 20, 60), 60, 60
PAIR, NEVER, ENOUGH = ("car", "dog"), "pear", 16


def try_once(
    ready: Prepared, classes: int, films: int, frames: int, seed: int
) -> tuple[float, float]:
    """Shares refused of known and of unknown frames."""
    random, y, videos = (
        np.random.default_rng([seed, classes, frames, films]),
        ready.train.y,
        ready.train.videos,
    )
    step = int(random.choice([1, 2, 4]))
    enough = [c for c in np.unique(y) if len(np.unique(videos[y == c])) >= films]
    taught = random.permutation(enough)[:classes]
    chosen = {c: random.permutation(np.unique(videos[y == c]))[:films] for c in taught}
    classifier = StreamClassifier(backbone=ready.backbone, seed=seed)
    for film, c in itertools.product(range(films), taught):
        rows = np.flatnonzero((y == c) & (videos == chosen[c][film]))
        start = random.integers(max(1, len(rows) - frames * step + 1))
        for i in rows[start::step][:frames]:
            classifier.learn_feature(ready.train[np.array([i])][0], int(c))
    known, shares = np.isin(ready.test.y, taught), []
    for asked in (known, ~known):
        Z = ready.test[np.sort(random.permutation(np.flatnonzero(asked))[:ASKED])]
        novelty = classifier.novelty.judge(measure_novelty(classifier.learner, Z))
        shares.append(float((novelty > 1).float().mean()))
    return shares[0], shares[1]


def try_page(folder: Path, seeds: int) -> None:
    """The page's film; prints the least shares over all speeds and seeds."""
    classifier = StreamClassifier()

    def read(name: str, objects: range, every: int) -> list[Tensor]:
        folders = sorted((folder / name).iterdir())
        views = [view for i in objects for view in sorted(folders[i].iterdir())[::every]]
        return list(classifier.features(views))

    film = {name: read(name, range(7), 11) for name in PAIR}
    asked = {name: read(name, range(7, 10), 8) for name in (*PAIR, NEVER)}
    found = []
    for step, seed in itertools.product((1, 2, 3, 4, 7, 14), range(seeds)):
        random, taught = np.random.default_rng(seed), dict.fromkeys(PAIR, 0)
        classifier.reset()
        while min(taught.values()) < ENOUGH:
            for name in PAIR:
                for z in film[name][random.integers(step) :: step]:
                    classifier.learn_feature(z, name)
                    taught[name] += 1
        answers = {k: [classifier.ask_feature(z) for z in asked[k]] for k in asked}
        novelty = {k: float(np.median([a.novelty for a in rows])) for k, rows in answers.items()}
        for name in PAIR:
            nearest = np.mean([a.nearest == name for a in answers[name]])
            known = np.mean([a.known for a in answers[name]])
            found.append((nearest, known, novelty[NEVER] - novelty[name]))
    nearest, known, gap = np.min(found, 0)
    print(f"page: at least {nearest:.2f} nearest to their class, {known:.2f} known")
    print(f"page: {NEVER} is at least {gap:.2f} more novel in the median")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="SET", default=[*THIN, "page"])
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    print("| data | holds of a class | known refused | unknown refused |\n|---|--:|--:|--:|")
    for name in (n for n in options.names if n != "page"):
        ready = prepare(Run(f"folder:{name}", **(SETS[name] | {"thin": THIN[name]})))
        pairs = np.unique(np.stack((ready.train.y, ready.train.videos), 1), axis=0)
        least = int(np.unique(pairs[:, 0], return_counts=True)[1].min())  # videos of a class
        shares = defaultdict(list)
        for seed, classes, frames, films in itertools.product(
            range(options.seeds), (2, 3, 5), FRAMES, (1, 2, 3)
        ):
            if frames * films <= MOST and films <= least:
                shares[films].append(try_once(ready, classes, films, frames, seed))
        for films, rows in sorted(shares.items()):
            known, unknown = np.mean(rows, 0)
            print(f"| {name} | {films} | {known:.3f} | {unknown:.3f} |", flush=True)
    if "page" in options.names:
        try_page(Path(os.environ["VERSE_DATA"]) / "eth80", options.seeds)


if __name__ == "__main__":
    main()
