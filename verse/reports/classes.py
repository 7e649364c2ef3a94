"""What is mistaken for what: accuracy by class and the confusion at the end of the stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from verse.experiments.result import Result
from verse.reports import style
from verse.reports.cells import Bench, Results, SortedResults, orders_of
from verse.reports.figures import ReportFigure
from verse.reports.scores import competitors
from verse.reports.statistics import Floats
from verse.reports.tables import Table, Text

MOST = 60  # classes that a figure can name
SHOWN = 4  # learners that have a column
PAIRS = 5  # mistakes that are named


def accuracies(runs: Results) -> dict[str, float]:
    """Class → share of its test frames that were right at the end, over all runs."""
    right: dict[str, int] = {}
    frames: dict[str, int] = {}
    for run in runs:
        for label, hits, count in run.events[-1].by_class:
            name = run.classes[label]
            right[name] = right.get(name, 0) + hits
            frames[name] = frames.get(name, 0) + count
    return {name: right[name] / frames[name] for name in right}


def tabulate_classes(found: SortedResults, bench: Bench, order: str) -> Table | None:
    """Classes × the best learners, the hardest class first."""
    cells = found.main(bench)
    names = [n for n in competitors(found, bench) if order in cells[n]][:SHOWN]
    columns = {name: accuracies(cells[name][order]) for name in names}
    columns = {name: by for name, by in columns.items() if by}
    if not columns:
        return None
    classes = list(dict.fromkeys(k for by in columns.values() for k in by))
    classes.sort(key=lambda k: np.mean([by[k] for by in columns.values() if k in by]))
    best = next(iter(columns))
    wrong = mistakes(cells[best][order])
    rows = [
        [
            Text(k),
            *(Text(f"{by[k]:.3f}" if k in by else "–") for by in columns.values()),
            Text(wrong.get(k, "")),
        ]
        for k in classes
    ]
    records = [
        {"dataset": bench.dataset, "order": order, "class": k, "learner": name, "accuracy": by[k]}
        for k in classes
        for name, by in columns.items()
        if k in by
    ]
    note = f"Share of test frames that are right at the end. The last column is of {best}."
    return Table(
        f"classes-{order}-{bench.slug}",
        f"By class: {order} on {bench.title}",
        ["class", *columns, "most often taken for"],
        rows,
        note,
        records,
    )


def mistakes(runs: Results) -> dict[str, str]:
    """Class → what it was most often taken for, if anything."""
    counts = sum_confusions(runs)
    np.fill_diagonal(counts, 0)
    names = runs[0].classes
    return {names[k]: names[int(row.argmax())] for k, row in enumerate(counts) if row.any()}


def sum_confusions(runs: Results) -> Floats:
    """Frames [true class, answer] at the end, over all runs; no answer counts nowhere."""
    counts = np.zeros((len(runs[0].classes),) * 2)
    for run in runs:
        for true, answer, frames in run.events[-1].confusion:
            if answer >= 0:
                counts[true, answer] += frames
    return counts


def draw_confusion(found: SortedResults, bench: Bench, folder: Path) -> ReportFigure | None:
    """The confusion of the best learner in the hardest ordering, as shares of each class."""
    cells = found.main(bench)
    best = next(iter(competitors(found, bench)), None)
    if best is None:
        return None
    order = orders_of({best: cells[best]})[-1]
    runs = [r for r in cells[best][order] if _complete(r)]
    if not runs or len(runs[0].classes) > MOST:
        return None
    counts = sum_confusions(runs)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    size = max(4.0, 0.22 * len(shares) + 1.6)
    drawing, (axis,) = style.panels(1, size, width=size)
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    ticks = range(len(shares))
    axis.set_xticks(ticks, runs[0].classes, rotation=90, fontsize=7)
    axis.set_yticks(ticks, runs[0].classes, fontsize=7)
    axis.set_xlabel("answer")
    axis.set_ylabel("true class")
    axis.grid(visible=False)
    name = style.save(drawing, folder, f"confusion-{bench.slug}")
    note = f"Share of each class' test frames at the end of the stream; {best}, {order}."
    return ReportFigure(name, f"What is taken for what: {bench.title}", note)


def _complete(result: Result) -> bool:
    return bool(result.events[-1].confusion)
