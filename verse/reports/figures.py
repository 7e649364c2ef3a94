"""The figures of a data set: α_t curves, bars of μ_all, Ω_all with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from verse.extras import OptionalImport
from verse.reports import statistics, style
from verse.reports.cells import (
    Bench,
    Results,
    SortedResults,
    fine_tunes,
    is_verse,
    orders_of,
)
from verse.reports.scores import MARK, competitors, format_name
from verse.reports.statistics import Estimate

with OptionalImport():
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

SHOWN = 6  # rivals drawn in colour among the curves
LEGEND_ENTRY = 1.35  # inches that a name in a legend takes


class ReportFigure(NamedTuple):
    """A figure's name (of its .png and .svg) and what it shows."""

    name: str
    title: str
    note: str


def curves(found: SortedResults, bench: Bench, folder: Path) -> ReportFigure:
    """α_t of every learner, one panel per ordering."""
    # VERSE with α = 0 would hide VERSE: where it differs the tables say
    cells = {n: by for n, by in found.main(bench).items() if n != "verse-no-virtual"}
    orders = orders_of(cells)
    best = [name for name in competitors(found, bench) if name in cells]
    verses = [name for name in best if is_verse(name)]
    rivals = [name for name in best if not is_verse(name)][:SHOWN]
    look = style.looks([*verses, *rivals])
    figure, axes = style.panels(len(orders), 3.3, width=4.6, rows=2 if len(orders) > 2 else 1)
    for axis, order in zip(axes, orders, strict=True):
        by_class = order.startswith("class-")
        drawn = [name for name in cells if order in cells[name]]
        for name in sorted(drawn, key=lambda n: (n in look, n in verses, n == "verse")):
            mean, spread = _mean_curve([r.alpha for r in cells[name][order]])
            x = _steps(cells[name][order], by_class)
            if name not in look:
                axis.plot(x, mean, color=style.OTHER, zorder=1, linewidth=0.8)
                continue
            colour, marker = look[name]
            axis.plot(
                x,
                mean,
                color=colour,
                marker=marker,
                markersize=4,
                zorder=3,
                linewidth=2.2 if name in verses else 1.3,
            )
            if name == "verse" and len(cells[name][order]) > 1:
                axis.fill_between(
                    x, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0
                )
        bounds = {r.run.seed: r for by in cells.values() for r in by.get(order, []) if r.offline}
        if bounds:
            runs = list(bounds.values())
            mean, _ = _mean_curve([r.offline_alpha or [] for r in runs])
            axis.plot(_steps(runs, by_class), mean, "--", color=style.BOUND, linewidth=1.3)
        axis.set_title(order)
        axis.set_xlabel("classes seen" if by_class else "share of the stream")
        axis.set_ylabel("accuracy α_t")
        if by_class:
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        else:
            axis.xaxis.set_major_formatter("{x:.0%}")
    axes[0].set_ylim(0, 1.02)
    handles = [
        Line2D(
            [],
            [],
            color=look[name].colour,
            marker=look[name].marker,
            markersize=5,
            linewidth=2,
            label=name,
        )
        for name in look
    ]
    handles += [Line2D([], [], color=style.BOUND, linestyle="--", label="Offline")]
    if len(cells) > len(look):
        handles += [Line2D([], [], color=style.OTHER, linewidth=1, label="others")]
    columns = int(figure.get_figwidth() / LEGEND_ENTRY)
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), columns))
    note = (
        "Mean over seeds; the band around VERSE is one standard deviation of seeds. In colour: "
        f"VERSE, its variants and the {len(rivals)} best rivals."
    )
    if "verse-no-virtual" in found.main(bench):
        note += " VERSE without the virtual step is not drawn: it would cover VERSE."
    return ReportFigure(
        style.save(figure, folder, f"alpha-{bench.slug}"),
        f"Accuracy over the stream: {bench.title}",
        note,
    )


def _mean_curve(curves: Sequence[Sequence[float]]) -> tuple[statistics.Floats, statistics.Floats]:
    length = min(len(curve) for curve in curves)
    values = np.array([list(curve)[:length] for curve in curves], dtype=np.float64)
    return values.mean(0), values.std(0, ddof=min(1, len(values) - 1))


def _steps(runs: Results, by_class: bool) -> list[float]:
    length = min(len(run.events) for run in runs)
    events, frames = runs[0].events[:length], runs[0].frames
    return [len(e.classes) if by_class else e.after / frames for e in events]


def bars(found: SortedResults, bench: Bench, folder: Path) -> ReportFigure:
    """μ_all of every learner with its interval, one panel per ordering, the best on top."""
    cells = found.main(bench)
    orders = orders_of(cells)
    figure, axes = style.panels(len(orders), 1.1 + 0.21 * len(cells), share=False)
    for axis, order in zip(axes, orders, strict=True):
        there = {n: statistics.mu(by[order]) for n, by in cells.items() if order in by}
        names = sorted(there, key=lambda name: there[name].mean)
        _bars(axis, names, there)
        axis.set_title(order)
        axis.set_xlabel("μ_all")
        axis.set_xlim(0, 1)
    note = (
        "Mean accuracy with its 95 % interval, in order of the means, which stand on unequal "
        "numbers of seeds: the tables compare on common ones. "
        f"{MARK}: fine-tunes before it answers (hatched)."
    )
    return ReportFigure(
        style.save(figure, folder, f"mu-{bench.slug}"), f"Mean accuracy μ_all: {bench.title}", note
    )


def _bars(axis: Axes, names: Sequence[str], there: dict[str, Estimate]) -> None:
    place = np.arange(len(names), dtype=np.float64)
    shades = [style.shade(name) for name in names]
    known = [there[n] for n in names]
    means = [e.mean for e in known]
    drawn = axis.barh(place, means, color=shades, height=0.72)
    for name, bar in zip(names, drawn, strict=True):
        if fine_tunes(name):
            bar.set_hatch("////")
            bar.set_edgecolor("white")
    style.draw_estimates(
        axis,
        dict(zip(place, known, strict=True)),
        flat=True,
        fmt="none",
        ecolor="#222222",
        elinewidth=1,
        capsize=2,
    )
    axis.set_yticks(place, [format_name(name) for name in names])
    axis.grid(visible=False, axis="y")
    axis.set_ylim(-0.6, len(names) - 0.4)


def intervals(found: SortedResults, bench: Bench, folder: Path) -> ReportFigure | None:
    """Ω_all of every learner with its interval, one panel per ordering."""
    cells = found.main(bench)
    orders = [
        o
        for o in orders_of(cells)
        if any(statistics.omega(by[o]) for by in cells.values() if o in by)
    ]
    if not orders:
        return None
    names = list(reversed(competitors(found, bench)))
    names = [n for n in cells if fine_tunes(n)] + names
    figure, axes = style.panels(len(orders), 1.1 + 0.21 * len(names))
    for axis, order in zip(axes, orders, strict=True):
        kinds: dict[tuple[str, bool], dict[float, Estimate]] = {}
        for row, name in enumerate(names):
            e = statistics.omega(cells[name][order]) if order in cells[name] else None
            if e is not None:
                kinds.setdefault((style.shade(name), fine_tunes(name)), {})[row] = e
        for (colour, hollow), rows in kinds.items():
            dots(axis, rows, colour, hollow)
        axis.axvline(1, color=style.BOUND, linestyle="--", linewidth=1)
        axis.set_title(order)
        axis.set_xlabel("Ω_all")
        axis.set_yticks(range(len(names)), [format_name(name) for name in names])
        axis.set_ylim(-0.6, len(names) - 0.4)
        axis.set_xlim(left=0)
    note = (
        "Mean and 95 % interval over seeds and test videos; the dashed line is Offline. Ordered by "
        f"mean accuracy over all orderings. {MARK}: fine-tunes before it answers (hollow)."
    )
    return ReportFigure(
        style.save(figure, folder, f"omega-{bench.slug}"),
        f"Ω_all with intervals: {bench.title}",
        note,
    )


def dots(axis: Axes, rows: dict[float, Estimate], colour: str, hollow: bool) -> None:
    """Row → estimate; hollow dots mark what does not count as a win."""
    style.draw_estimates(
        axis,
        rows,
        flat=True,
        fmt="o",
        color=colour,
        markersize=5,
        elinewidth=1.6,
        mfc="white" if hollow else colour,
    )
