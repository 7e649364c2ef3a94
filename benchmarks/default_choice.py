"""How the settings of verse-joint were chosen: every trial on validation videos, one line each.

    VERSE_DATA=… python benchmarks/default_choice.py run benchmarks/default_choice.jsonl [TRIAL …]
    python benchmarks/default_choice.py show benchmarks/default_choice.jsonl
    VERSE_DATA=… python benchmarks/default_choice.py test benchmarks/default_test.jsonl

``run`` adds the trials that the file does not hold yet; ``show`` compares them: the mean over seeds
of the mean accuracy over test events, and the difference to verse-joint with its 95 % interval over
seeds, worst first. Test frames are not looked at. ``test``, done once after everything was chosen,
compares verse-joint and its parts on test videos, with seeds of its own. A trial whose name begins
with "before" is of the default before the averages. Probabilities are measured by calibration.py.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from verse import evaluate, learners, streams
from verse.evaluate import Finished
from verse.experiments.prepare import Prepared, prepare
from verse.experiments.run import Run
from verse.memory import ClassBalanced

SETS: dict[str, dict[str, Any]] = {
    "eth80": {"holdout": "last:3", "validation": "last:2", "thin": 2},
    "gtsrb": {"holdout": "last:3", "validation": "last:1", "thin": 6},
    "asl": {"holdout": "last:1", "validation": "last:1", "thin": 40},
    "gtsrb_full": {"holdout": "last:25%", "validation": "last:20%", "thin": 20},
    "icub_camera": {"holdout": "arcs:6:3,6", "validation": "last:1", "thin": 4},
}
EVERY = {"eth80": 1}  # classes between two tests; 5 elsewhere
SEEDS, TEST_SEEDS = range(100, 105), range(200, 205)
TESTED = ("verse-joint", "slda joint", "slda pooled", "verse", "verse-lda")
BYTES = 3_000_000  # of samples; the statistics of verse-joint are 6.6 MB beside them
GRID = {"alpha": 0.15, "beta": 0.3, "lam": 0.03, "clip": None}  # rates of verse on a grid
BEFORE = {"s": 0.5, "shrinkage": 0.15, "average": 0.0, "sharpness": 60.0, "weight": 0.25}
# trial → (learner, settings, bytes of samples). All have the bytes of verse-joint, if they can.
TRIALS: dict[str, tuple[str, dict[str, Any], int]] = {
    "verse-joint": ("verse-joint", {}, BYTES),
    "slda joint": ("slda", {"features": "grid", "shrinkage": 0.1}, BYTES),
    "slda pooled": ("slda", {"features": "input"}, BYTES),
    "verse": ("verse", GRID, BYTES + 6_600_000),
    "verse-lda": ("verse-lda", {}, BYTES + 5_000_000),
    # one setting otherwise
    "weight=0": ("verse-joint", {"weight": 0.0}, BYTES),
    "average=0.25": ("verse-joint", {"average": 0.25}, BYTES),
    "average=0": ("verse-joint", {"average": 0.0}, BYTES),
    "s=0.5": ("verse-joint", {"s": 0.5}, BYTES),
    # what was the default before: no averages, a network with more say
    "before": ("verse-joint", BEFORE, BYTES),
    "before, weight=0": ("verse-joint", BEFORE | {"weight": 0.0}, BYTES),
    "before, weight=0.5": ("verse-joint", BEFORE | {"weight": 0.5}, BYTES),
    "before, s=0.25": ("verse-joint", BEFORE | {"s": 0.25}, BYTES),
    "before, shrinkage=0.1": ("verse-joint", BEFORE | {"shrinkage": 0.1}, BYTES),
}


def build(trial: str, ready: Prepared, seed: int) -> learners.Learner:
    name, settings, byte_limit = TRIALS[trial]
    store = ClassBalanced(byte_limit=byte_limit, seed=seed)
    return learners.build(name, ready.backbone.F, store, seed=seed, **settings)


def accuracy(trial: str, ready: Prepared, name: str, order: str, seed: int) -> dict[str, Any]:
    """The mean over test events, and the last of them."""
    frames = ready.dataset.train
    index = streams.order(order, ready.train.y, ready.train.videos, frames.frames, seed)
    train = ready.train.take(index)
    schedule = streams.Schedule.of(order, train.y, every=EVERY.get(name, 5))
    *_, last = evaluate.stream(build(trial, ready, seed), train, ready.test, schedule)
    assert isinstance(last, Finished)
    alpha = last.so_far.alpha
    return {"mean": round(float(np.mean(alpha)), 4), "final": round(alpha[-1], 4)}


def run(path: Path, trials: Sequence[str], *, test: bool = False) -> None:
    held = path.read_text().splitlines() if path.exists() else []
    done = {json.dumps(json.loads(line)["what"]) for line in held}
    with path.open("a") as file:
        for name, split in SETS.items():
            kept = {k: v for k, v in split.items() if not (test and k == "validation")}
            ready = prepare(Run(f"folder:{name}", **kept))
            wanted: list[list[Any]] = [
                [trial, name, *rest]
                for trial in trials
                for rest in itertools.product(streams.names(), TEST_SEEDS if test else SEEDS)
            ]
            for what in wanted:
                if json.dumps(what) in done:
                    continue
                trial, _, order, seed = what
                found = accuracy(trial, ready, name, order, seed)
                file.write(json.dumps({"what": what, **found}, separators=(",", ":")) + "\n")
                file.flush()


def show(path: Path) -> None:
    means: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    for line in path.read_text().splitlines():
        found = json.loads(line)
        trial, name, order, seed = found["what"]
        means[trial, name, order][seed] = found["mean"]
    for trial in dict.fromkeys(trial for trial, *_ in means):
        rows = []
        for (other, name, order), found in means.items():
            ours = means.get(("verse-joint", name, order), {})
            both = sorted(found.keys() & ours.keys())
            if other == trial and both:
                gap = np.array([ours[s] - found[s] for s in both])
                half = stats.t.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / len(gap) ** 0.5
                rows.append((gap.mean(), half, name, order, np.mean(list(found.values()))))
        print(f"\n{trial}: its mean accuracy; verse-joint has so much more")
        for gap, half, name, order, mean in sorted(rows):
            print(f"  {name:12s} {order:15s} {mean:.4f}  {gap:+.4f} ± {half:.4f}")


if __name__ == "__main__":
    command, file = sys.argv[1], Path(sys.argv[2])
    if command == "run":
        run(file, sys.argv[3:] or list(TRIALS))
    elif command == "test":
        run(file, TESTED, test=True)
    else:
        show(file)
