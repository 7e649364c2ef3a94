"""What of the computation at the paper's scale is finished, and what it costs, recipe by recipe."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from paper.blocks import table
from paper.reading import runs_of
from verse.experiments.result import Result
from verse.experiments.run import Run

# Recipes → what they make, in the order of recipes/README.md.
RECIPES = {
    "tuning-rates": "tuning, first stage: rates with and without clipping; numbers of closed forms",
    "tuning-rates-short": "the same for the methods that run on the short sets only",
    "tuning-edges-*": "rates beyond an edge, written by `python -m paper.tune`",
    "tuning-knobs-*": "tuning, second stage: what else matters, three seeds; written likewise",
    "tuning-beyond-*": "one step beyond an edge of the second stage; written likewise",
    "tuning-room": "rates and clipping again with room for all classes from the start",
    "scale-asl": "the main table: asl, sixteen learners, two orderings",
    "scale-gtsrb_full": "the main table: gtsrb_full, the same",
    "scale-eth80": "the main table: eth80, all learners, four orderings",
    "scale-gtsrb": "the main table: gtsrb, all learners, two orderings",
    "scale-icub_camera": "the main table: icub_camera, the same",
    "scale-*-4percent": "the memory of the first comparison",
    "scale-*-bytes": "equal bytes for plain, compact and coded samples; as many as slda takes",
    "scale-reference": "what Ω divides by, once for all learners",
    "virtual-*": "the virtual step: α × β without clipping, ten seeds",
    "unclipped": "VERSE without clipping, as in the paper, on every set",
    "growing": "a memory that grows with the classes, in place of room from the start",
    "parts-*": "teacher, λ, r, policy, capacity, ten seeds",
    "length-*": "accuracy against the length of the stream",
    "tuning-depth*": "rates for each split of the next row",
    "depth-gtsrb": "what may learn: last layer, grid, head, last block",
    "causes-default": "what holds the default back where it is not first",
    "joined": "gtsrb_full, asl, icub_camera and eth80 in one stream, 129 classes",
    "tuning-resnet18": "the paper's own network and split: tuning",
    "resnet18-paper": "the paper's own network and split: comparison",
    "resnet18-asl": "the same on a part of asl",
}
# Milliseconds of processor time of a step on the grid with 29 classes and 23 samples a class, on
# two AVX2 cores; one that is not here takes as long as ``OTHER``.
STEP = {
    "ncm": 0.15,
    "slda": 0.27,
    "slda-grid": 0.9,
    "fine-tune": 0.4,
    "tinyer": 0.55,
    "fifo": 0.55,
    "verse": 0.9,
    "verse-no-virtual": 0.6,
    "verse-new-sample": 0.9,
    "er-ace": 1.0,
    "ridge": 1.1,
    "ranpac": 1.2,
    "cls-er": 1.2,
    "derpp": 1.3,
    "verse-joint": 1.5,
    "vcl": 1.6,
    "coreset-vcl": 1.6,
    "remind": 2.9,
    "scr": 4.0,
    "klda": 4.0,
    "exstream": 5.0,
    "gem": 8.0,
}
OTHER = 1.0
# Times as long where a block of the network is trained; closed forms only compute it.
DEEP = {"head": 70, "blocks.last": 200, "layer4.1": 300}
FORWARD = 12
FIXED = {"ncm", "slda", "slda-grid", "ridge", "ranpac", "exstream", "klda", "fecam"}
FRAMES = {"asl": 36_250, "gtsrb_full": 28_950, "eth80": 2_296, "gtsrb": 8_460, "icub_camera": 2_352}
JOINED = sum(FRAMES.values()) - FRAMES["gtsrb"]
OVERHEAD = 1.3  # tests, reading of features, start of a run
REFERENCE = 80.0  # seconds of Offline and closed forms in a run


def estimate(run: Run) -> float:
    """CPU hours of a run."""
    data = run.dataset.removeprefix("folder:")
    frames = FRAMES.get(data, JOINED) / run.thin
    if run.length:
        frames = min(frames, run.length)
    deep = DEEP.get(run.at or "", 1)
    if deep > 1 and run.learner in FIXED:
        deep = FORWARD
    seconds = frames * STEP.get(run.learner, OTHER) / 1000 * deep * OVERHEAD
    return (seconds + (REFERENCE if run.offline else 0)) / 3600


def block(tested: Iterable[Result], tried: Iterable[Result], recipes: Path) -> str:
    """The table: runs of each recipe, how many are finished, and the hours of what is left."""
    stores = [{r.id: r for r in tested}, {r.id: r for r in tried}]
    rows, left, spent = [], 0.0, 0.0
    counted = set[str]()
    for name, makes in RECIPES.items():
        known = stores[name.startswith("tuning")]
        files = [f for f in sorted(recipes.glob(f"{name}.toml")) if belongs(f.stem, name)]
        runs = {run.id: run for file in files for run in runs_of(file)}
        missing = [run for run in runs.values() if run.id not in known]
        hours = sum(map(estimate, missing))
        spent += sum(known[i].seconds for i in set(runs) & set(known) - counted) / 3600
        counted |= set(runs)
        left += hours
        done = f"{len(runs) - len(missing):,} of {len(runs):,}"
        rows.append([f"`{name}`", makes, done, f"{hours:.1f}" if missing else "–"])
    head = ["recipe", "what it makes", "finished", "CPU hours left"]
    return (
        f"{table(head, rows)}\nEstimated hours left: {left:.0f}. Finished runs took {spent:.1f} "
        "hours in all, measured by the clock on a busy machine, so that is an upper bound.\n"
    )


def belongs(recipe: str, pattern: str) -> bool:
    """Whether a file that matches is meant: one that has a row of its own is not.

    >>> belongs("scale-asl", "scale-asl"), belongs("scale-eth80-4percent", "scale-*-4percent")
    (True, True)
    """
    return recipe == pattern or recipe not in RECIPES
