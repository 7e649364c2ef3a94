"""How much of the network learns: whether a deeper trained part passes closed forms.

The runs are those of ``recipes/depth-gtsrb.toml``, whose rates ``recipes/tuning-depth.toml`` chose.
``python -m paper.pages`` writes this into docs/results/length.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from paper.length import CLOSED, ORDERS, judge
from paper.reading import runs_of
from verse.experiments.result import Result
from verse.reports import statistics, style
from verse.reports.cells import Results
from verse.reports.figures import ReportFigure
from verse.reports.page import Section
from verse.reports.tables import Table, Text

SPLITS = ("fc", "grid", "head", "blocks.last")
TITLE = "How much of the network learns"
TEXT = (
    "VERSE and replay with a larger and larger trained part, on traffic signs, which are unlike "
    "ImageNet: the last layer on the average of the last map (`fc`) or on its 2 × 2 grid (`grid`), "
    "the convolution before it (`head`), the last block (`blocks.last`). Deep parts are slow, so "
    "most streams are short. Memory holds 23 samples of every class, in class-instance with room "
    "for all from the start. Against slda on fixed features:"
)
NOTE = (
    "gtsrb, accuracy at the end, mean and 95 % interval. The learning rate of each split was "
    "chosen among five or more on validation videos (`recipes/tuning-depth.toml`)."
)
NONE = "No run of `recipes/depth-gtsrb.toml` is finished yet."


class Split(NamedTuple):
    """A learner and where its trained part begins."""

    learner: str
    at: str

    @property
    def fixed(self) -> bool:
        """Nothing of it is trained by gradient descent."""
        return self.learner in CLOSED

    @property
    def label(self) -> str:
        """For people."""
        return self.learner if self.fixed else f"{self.learner} from {self.at}"


BySplit = dict[Split, dict[tuple[str, int], Results]]
"""Where the trained part begins → (ordering, frames of the stream) → runs."""


def section(results: Iterable[Result], recipes: Path, folder: Path) -> Section:
    """Who is ahead at which length, a figure, and a table for each ordering."""
    wanted = {run.id for run in runs_of(recipes / "depth-gtsrb.toml")}
    by = by_split(r for r in results if r.id in wanted)
    found = Section(TITLE, TEXT if by else NONE)
    if not by:
        return found
    places = sorted({place for cells in by.values() for place in cells})
    lines = []
    for place in places:
        here = {split: cells[place] for split, cells in by.items() if place in cells}
        lead = judge(
            {split.label: runs for split, runs in here.items() if not split.fixed},
            {split.label: runs for split, runs in here.items() if split.fixed},
        )
        if lead is not None:
            order, frames = place
            lines.append(f"- {order}, {frames:,} frames: the best is {lead.learner}, {lead.text}.")
    found.text += "\n\n" + "\n".join(lines)
    found.add(draw(by, folder), *(tabulate(by, order) for order in ORDERS))
    return found


def by_split(results: Iterable[Result]) -> BySplit:
    """Learners by name, the smallest trained part first."""
    found: BySplit = defaultdict(dict)
    for r in results:
        split = Split(r.run.learner, r.run.at or "")
        found[split].setdefault((r.run.order, r.frames), []).append(r)
    return dict(sorted(found.items(), key=lambda item: (item[0].learner, SPLITS.index(item[0].at))))


def draw(by: Mapping[Split, Mapping[tuple[str, int], Results]], folder: Path) -> ReportFigure:
    """A panel for each ordering, a colour for each split."""
    lengths = {
        order: sorted(
            {frames for cells in by.values() for where, frames in cells if where == order}
        )
        for order in ORDERS
    }
    orders = [order for order in ORDERS if lengths[order]]
    figure, axes = style.panels(len(orders), 3.4, width=4.8)  # for the legend
    for axis, order in zip(axes, orders, strict=True):
        for number, (split, cells) in enumerate(by.items()):
            aside = 1.03 ** (number - len(by) / 2)  # whiskers must not cover each other
            points = {
                frames * aside: statistics.final(runs)
                for (where, frames), runs in sorted(cells.items())
                if where == order
            }
            if points:
                style.draw_estimates(
                    axis,
                    points,
                    color="black" if split.fixed else style.LEVELS[SPLITS.index(split.at)],
                    ls="--" if split.learner == "verse" else "-",
                    marker="s" if split.learner == "verse" else "o",
                    ms=4,
                    lw=1.3,
                    elinewidth=0.7,
                    label=split.label,
                )
        axis.set_xscale("log")
        axis.minorticks_off()
        axis.set_xticks(lengths[order], [f"{frames:,}" for frames in lengths[order]])
        axis.set_title(order)
        axis.set_xlabel("frames of the stream")
        axis.set_ylabel("accuracy at its end")
    style.add_common_legend(figure, axes)
    return ReportFigure(style.save(figure, folder, "depth"), "Depth of the trained part", NOTE)


def tabulate(by: Mapping[Split, Mapping[tuple[str, int], Results]], order: str) -> Table | None:
    """A row for each split, a column for each length."""
    lengths = sorted({frames for cells in by.values() for where, frames in cells if where == order})
    rows, records = [], []
    for split, cells in by.items():
        row = [Text(split.learner), Text("–" if split.fixed else f"`{split.at}`")]
        for frames in lengths:
            runs = cells.get((order, frames))
            e = None if runs is None else statistics.final(runs)
            row.append(Text("–" if e is None else str(e)))
            if e is not None:
                records.append(split._asdict() | {"order": order, "frames": frames} | e.record)
        rows.append(row)
    head = ["learner", "trained from", *(f"{frames:,} frames" for frames in lengths)]
    title = f"Depth of the trained part, {order}"
    return Table(f"depth-{order}", title, head, rows, NOTE, records) if lengths else None
