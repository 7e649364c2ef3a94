"""The two comparisons that are published: every frame with the paper's memory, and the first one.

They share nothing but the videos: length of the streams, memory, split and tuning differ. Each has
a store of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from verse import streams
from verse.experiments.run import Run

SHORT = ("eth80", "gtsrb", "icub_camera")
TWO_ORDERS = ("class-instance", "iid")  # of the long sets, and of gtsrb: the same signs
Cell = tuple[str, str]
"""Data set and ordering."""


@dataclass(frozen=True)
class Comparison:
    """What belongs to it, and what it takes to be complete."""

    title: str
    folder: str
    """Below docs/results; the main one lies there itself."""
    about: str
    cells: frozenset[Cell]
    recipe: str
    """The recipes of its cells, as a person would name them."""
    ablations: dict[str, str]
    """Knob → the recipe that turns it."""
    store: str
    """The folder of its runs below results; its trials are in ``tuning`` inside."""
    thinned: bool

    def holds(self, run: Run) -> bool:
        """Whether a run on test videos is part of it."""
        return (run.thin > 1) == self.thinned

    def missing(self, cells: set[Cell]) -> int:
        """How many of its cells are not among these; 0 on other data, where it names none."""
        sets = {data for data, _ in self.cells}
        return len(self.cells - cells) if any(data in sets for data, _ in cells) else 0


MAIN = Comparison(
    title="Results",
    folder="",
    about=(
        "Every frame of five sets of real videos, a memory of 23 samples a class as in the paper, "
        "a linear layer trained on a 2 × 2 grid of fixed features, and settings that were "
        "[chosen on validation videos](tuning.md) for every method and data set, but one for all "
        "sets for verse-joint. The network and the data are not the paper's: "
        "that a claim is not reproduced here does not refute it. [How learners are measured]"
        "(../protocol.md) says what each figure means, [comparing methods](../experiments.md) how "
        "to make them again, [what changed](../scale.md) why this comparison replaces "
        "[the first one](first/index.md)."
    ),
    cells=frozenset(
        [
            *((data, order) for data in ("asl", "gtsrb_full", "gtsrb") for order in TWO_ORDERS),
            *((data, order) for data in ("eth80", "icub_camera") for order in streams.names()),
        ]
    ),
    recipe="recipes/scale-*.toml",
    ablations=dict.fromkeys(("capacity", "lam", "r", "ema", "policy"), "recipes/parts-eth80.toml"),
    store="",
    thinned=False,
)
FIRST = Comparison(
    title="The first comparison: short streams",
    folder="first",
    about=(
        "Every second or third frame of three sets of real videos and one rendered, a memory of "
        "4 % of the stream (1 to 6 samples a class), the split `head`. Its streams are shorter and "
        "its memory smaller than the paper's, and VERSE was clipped and tuned by a setting "
        "without effect: [what changed, and why](../../scale.md). It is kept for the record and "
        "should not be relied on. That a claim is not reproduced here does not refute it. "
        "[The comparison that replaces it](../index.md)."
    ),
    cells=frozenset((data, order) for data in SHORT for order in streams.names()),
    recipe="recipes/omega-{eth80,gtsrb,icub}.toml",
    ablations={
        "capacity": "recipes/ablation-capacity.toml",
        "lam": "recipes/ablation-lambda.toml",
        "r": "recipes/ablation-r.toml",
        "ema": "recipes/ablation-ema.toml",
        "policy": "recipes/ablation-policy.toml",
    },
    store="first",
    thinned=True,
)
