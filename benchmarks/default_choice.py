"""How the settings of verse-joint were chosen: every trial on validation videos, one line each.

    VERSE_DATA=… python benchmarks/default_choice.py run benchmarks/default_choice.jsonl [TRIAL …]
    python benchmarks/default_choice.py show benchmarks/default_choice.jsonl
    python benchmarks/default_choice.py draw benchmarks/default_choice.jsonl reliability.png

``run`` adds the trials that the file does not hold yet; ``show`` compares them: the mean over seeds
of the mean accuracy over test events, the difference to verse-joint with its 95 % interval over
seeds, worst first, and how far probabilities are from what is right; ``draw`` how often answers are
right where they are so sure. Test frames are not looked at. A trial whose name begins with "before"
is of the default before the averages; their calibration was that of its time.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from verse import evaluate, learners, metrics, streams
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
SEEDS = range(100, 105)
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
SAMPLES = (3, 10, 30, 0)  # of a class, for calibration; 0: all


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


def calibration(trial: str, ready: Prepared, samples: int, seed: int) -> dict[str, Any]:
    """Random frames of each class, in random order; then the answers on all validation frames."""
    random, y = np.random.default_rng([seed, samples]), ready.train.y
    each = [random.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    shown = random.permutation(np.concatenate([rows[: samples or None] for rows in each]))
    learner = build(trial, ready, seed)
    for i in shown:
        learner.learn_one(ready.train[np.array([i])][0].clone(), int(y[i]))
    p = learner.predict_proba_many(ready.test[np.arange(len(ready.test))]).numpy()
    right = np.array(learner.labels)[p.argmax(1)] == ready.test.y
    sure, place = p.max(1), np.minimum((p.max(1) * 10).astype(int), 9)
    error = metrics.calibration_error(sure, right)
    found = {"accuracy": right.mean(), "confidence": sure.mean(), "ece": error}
    each_bin = (sure, right, np.ones(len(right)))
    bins = [np.bincount(place, values, 10).round(2).tolist() for values in each_bin]
    return {name: round(float(value), 4) for name, value in found.items()} | {
        "n": len(right),
        "bins": bins,
    }


def run(path: Path, trials: list[str]) -> None:
    held = path.read_text().splitlines() if path.exists() else []
    done = {json.dumps(json.loads(line)["what"]) for line in held}
    with path.open("a") as file:
        for name, split in SETS.items():
            ready = prepare(Run(f"folder:{name}", **split))
            wanted: list[list[Any]] = [
                [trial, name, *rest]
                for trial in trials
                for rest in itertools.product(streams.names(), SEEDS)
            ]
            if "verse-joint" in trials:
                each = itertools.product(SAMPLES, SEEDS)
                wanted += [["verse-joint", name, *rest] for rest in each]
            for what in wanted:
                if json.dumps(what) in done:
                    continue
                trial, _, how, seed = what
                if isinstance(how, int):
                    found = calibration(trial, ready, how, seed)
                else:
                    found = accuracy(trial, ready, name, how, seed)
                file.write(json.dumps({"what": what, **found}, separators=(",", ":")) + "\n")
                file.flush()


def show(path: Path) -> None:
    means: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
    errors: dict[tuple[str, str, int], list[dict[str, float]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        found = json.loads(line)
        trial, name, how, seed = found["what"]
        if isinstance(how, int):
            errors[trial, name, how].append(found)
        else:
            means[trial, name, how][seed] = found["mean"]
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
    print(
        "\nexpected calibration error: samples a class, accuracy, confidence, error of the answers"
    )
    print("of all draws together, mean of the errors of each draw")
    for (trial, name, n), found in errors.items():
        a, c, e = (np.mean([f[k] for f in found]) for k in ("accuracy", "confidence", "ece"))
        sure, right = np.array([f["bins"][:2] for f in found]).sum(0)
        pooled = np.abs(sure - right).sum() / sum(f["n"] for f in found)
        print(f"  {trial:12s} {name:12s} {n or 'all':>4} {a:.3f} {c:.3f} {pooled:.3f} {e:.3f}")


def draw(path: Path, out: Path) -> None:
    """Reliability: how often answers are right, by how sure they are; a panel for each set."""
    import matplotlib.pyplot as plt

    held = [json.loads(line) for line in path.read_text().splitlines()]
    figure, panels = plt.subplots(1, len(SETS), figsize=(14, 3.2), sharey=True)
    for name, panel in zip(SETS, panels, strict=True):
        panel.plot([0, 1], [0, 1], color="0.7", linewidth=1)
        for samples in SAMPLES:
            found = [f for f in held if f["what"][:3] == ["verse-joint", name, samples]]
            if found:
                sure, right, n = np.array([f["bins"] for f in found]).sum(0)
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
        run(file, sys.argv[3:] or list(TRIALS))
    elif command == "draw":
        draw(file, Path(sys.argv[3]))
    else:
        show(file)
