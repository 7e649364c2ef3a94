"""Accuracy against the length of the stream: ``python -m paper.length`` writes its figure.

It reads results/ and writes docs/images/length.png and .svg, from the runs of
``recipes/length-*.toml`` and, for the whole stream, of ``recipes/scale-*.toml``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from paper.source import ROOT
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.store import Store
from verse.reports import style

SETS = ("eth80", "asl", "gtsrb_full")
ORDERS = ("class-instance", "iid")


@dataclass
class Curve:
    """Frames of the stream → accuracy at its end, one value for each seed."""

    points: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def means(self) -> tuple[list[int], list[float], list[float]]:
        """Lengths, means, and half of the range over seeds."""
        lengths = sorted(self.points)
        values = [self.points[n] for n in lengths]
        spread = [float(np.ptp(v)) / 2 for v in values]
        return lengths, [float(np.mean(v)) for v in values], spread


def curves(results: Iterable[Result], wanted: set[str]) -> dict[tuple[str, str, str], Curve]:
    """(data set, ordering, learner) → its curve, from the runs that are wanted."""
    found: dict[tuple[str, str, str], Curve] = defaultdict(Curve)
    for r in results:
        if r.id in wanted:
            place = (r.run.dataset.removeprefix("folder:"), r.run.order, r.run.learner)
            found[place].points[r.frames].append(r.alpha[-1])
    return dict(found)


def identities(recipes: Path) -> set[str]:
    """The runs that belong to the figure: the shortened ones, and the whole stream beside them."""
    names = set[str]()
    for data in SETS:
        short = read_recipe(recipes / f"length-{data}.toml").runs
        whole = read_recipe(recipes / f"scale-{data}.toml").runs
        learners = {run.learner for run in short}
        names |= {run.id for run in short}
        names |= {run.id for run in whole if run.learner in learners and run.order in ORDERS}
    return names


def draw(found: dict[tuple[str, str, str], Curve], folder: Path) -> None:
    """A row of panels for each ordering, a panel for each data set."""
    learners = list(dict.fromkeys(learner for _, _, learner in found))
    looks = style.looks(learners)
    with style.use_style():
        figure, axes = style.panels(len(SETS) * len(ORDERS), 2.8, rows=len(ORDERS))
        places = [(order, data) for order in ORDERS for data in SETS]
        for axis, (order, data) in zip(axes, places, strict=True):
            for learner, look in looks.items():
                if curve := found.get((data, order, learner)):
                    x, y, spread = curve.means()
                    axis.errorbar(x, y, spread, color=look.colour, marker=look.marker, ms=4,
                                  lw=1.3, elinewidth=0.8, label=learner)  # fmt: skip
            axis.set_xscale("log")
            axis.set_title(f"{data}, {order}")
            axis.set_xlabel("frames of the stream")
        for axis in axes[:: len(SETS)]:
            axis.set_ylabel("accuracy at its end")
        handles = {t: h for axis in axes for h, t in zip(*axis.get_legend_handles_labels(),
                                                         strict=True)}  # fmt: skip
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
        style.save(figure, folder, "length")


def main() -> None:
    """Draw what there is."""
    found = curves(Store(ROOT / "results").results(), identities(ROOT / "recipes"))
    if not found:
        raise SystemExit("no run of recipes/length-*.toml is in results: python -m paper.grid")
    draw(found, ROOT / "docs" / "images")


if __name__ == "__main__":
    main()
