"""The figures: α_t curves, bars of μ_all, Ω_all with intervals, MAML, ablations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from verse.reports import statistics, style
from verse.reports.ablations import Ablation
from verse.reports.cells import Bench, Results, Sorted, fine_tunes, orders_of
from verse.reports.omega import MARK, competitors
from verse.reports.statistics import Estimate
from verse.types import MissingExtra

try:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
except ModuleNotFoundError as error:
    raise MissingExtra("matplotlib", "report") from error

SHOWN = 6  # rivals drawn in colour among the curves


class Picture(NamedTuple):
    """A figure's name (of its .png and .svg) and what it shows."""

    name: str
    title: str
    note: str


def curves(found: Sorted, bench: Bench, folder: Path) -> Picture:
    """α_t of every learner, one panel per ordering."""
    cells = found.main(bench)
    orders = orders_of(cells)
    best = competitors(found, bench)
    verses = [name for name in best if name.startswith("verse")]
    rivals = [name for name in best if not name.startswith("verse")][:SHOWN]
    colour = style.colours([*verses, *rivals])
    figure, axes = style.panels(len(orders), 3.9)
    for axis, order in zip(axes, orders, strict=True):
        by_class = order.startswith("class-")
        for name in sorted(cells, key=lambda n: (n in colour, n in verses)):
            if order in cells[name]:
                mean, spread = _mean_curve([r.alpha for r in cells[name][order]])
                x = _steps(cells[name][order], by_class)
                strong = name in colour
                axis.plot(x, mean, color=colour.get(name, style.OTHER), zorder=3 if strong else 1,
                          linewidth=2.2 if name in verses else 1.5 if strong else 0.8)  # fmt: skip
                if name in verses and len(cells[name][order]) > 1:
                    axis.fill_between(x, mean - spread, mean + spread, color=colour[name],
                                      alpha=0.15, linewidth=0)  # fmt: skip
        bounds = {r.run.seed: r for by in cells.values() for r in by.get(order, []) if r.offline}
        if bounds:
            runs = list(bounds.values())
            mean, _ = _mean_curve([r.offline_alpha or [] for r in runs])
            axis.plot(_steps(runs, by_class), mean, "--", color=style.BOUND, linewidth=1.3)
        axis.set_title(order)
        axis.set_xlabel("classes seen" if by_class else "share of the stream")
        if not by_class:
            axis.xaxis.set_major_formatter("{x:.0%}")
    axes[0].set_ylabel("accuracy α_t")
    axes[0].set_ylim(0, 1.02)
    handles = [Line2D([], [], color=colour[name], linewidth=2, label=name) for name in colour]
    handles += [Line2D([], [], color=style.BOUND, linestyle="--", label="Offline")]
    if len(cells) > len(colour):
        handles += [Line2D([], [], color=style.OTHER, linewidth=1, label="others")]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 6))
    note = "Mean over seeds; the band around VERSE is one standard deviation of seeds."
    return Picture(style.save(figure, folder, f"alpha-{bench.slug}"),
                   f"Accuracy over the stream: {bench.title}", note)  # fmt: skip


def _mean_curve(curves: Sequence[Sequence[float]]) -> tuple[statistics.Floats, statistics.Floats]:
    length = min(len(curve) for curve in curves)
    values = np.array([list(curve)[:length] for curve in curves], dtype=np.float64)
    return values.mean(0), values.std(0)


def _steps(runs: Results, by_class: bool) -> list[float]:
    length = min(len(run.events) for run in runs)
    events, frames = runs[0].events[:length], runs[0].frames
    return [len(e.classes) if by_class else e.after / frames for e in events]


def bars(found: Sorted, bench: Bench, folder: Path) -> Picture:
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
    note = f"Mean accuracy with its 95 % interval. {MARK}: fine-tunes before it answers (hatched)."
    return Picture(style.save(figure, folder, f"mu-{bench.slug}"),
                   f"Mean accuracy μ_all: {bench.title}", note)  # fmt: skip


def _bars(axis: Axes, names: Sequence[str], there: dict[str, Estimate]) -> None:
    place = np.arange(len(names), dtype=np.float64)
    shades = [_shade(name) for name in names]
    marked = [f"{n}{MARK}" if fine_tunes(n) else n for n in names]
    drawn = axis.barh(place, [there[n].mean for n in names], color=shades, height=0.72)
    for name, bar in zip(names, drawn, strict=True):
        if fine_tunes(name):
            bar.set_hatch("////")
            bar.set_edgecolor("white")
    _whiskers(axis, names, there, place)
    axis.set_yticks(place, marked)
    axis.grid(visible=False, axis="y")
    axis.set_ylim(-0.6, len(names) - 0.4)


def _whiskers(
    axis: Axes, names: Sequence[str], there: dict[str, Estimate], place: statistics.Floats
) -> None:
    means = np.array([there[n].mean for n in names])
    ends = np.array([[there[n].low, there[n].high] for n in names]).reshape(-1, 2)
    reach = np.abs(ends - means[:, None]).T  # [2, n]
    axis.errorbar(means, place, xerr=reach, fmt="none", ecolor="#222222", elinewidth=1, capsize=2)


def _shade(name: str) -> str:
    if name == "verse":
        return style.colours(["verse"])["verse"]
    return "#f0a35e" if name.startswith("verse") else "#8fb3d1"


def intervals(found: Sorted, bench: Bench, folder: Path) -> Picture | None:
    """Ω_all of every learner with its interval, one panel per ordering."""
    cells = found.main(bench)
    orders = [o for o in orders_of(cells)
              if any(statistics.omega(by[o]) for by in cells.values() if o in by)]  # fmt: skip
    if not orders:
        return None
    names = list(reversed(competitors(found, bench)))
    names = [n for n in cells if fine_tunes(n)] + names
    figure, axes = style.panels(len(orders), 1.1 + 0.21 * len(names))
    for axis, order in zip(axes, orders, strict=True):
        for row, name in enumerate(names):
            e = statistics.omega(cells[name][order]) if order in cells[name] else None
            if e is not None:
                hollow = "white" if fine_tunes(name) else _shade(name)
                reach = [[max(e.mean - e.low, 0)], [max(e.high - e.mean, 0)]]
                axis.errorbar(e.mean, row, xerr=reach, fmt="o", color=_shade(name),
                              mfc=hollow, markersize=5, elinewidth=1.6)  # fmt: skip
        axis.axvline(1, color=style.BOUND, linestyle="--", linewidth=1)
        axis.set_title(order)
        axis.set_xlabel("Ω_all")
        axis.set_yticks(range(len(names)), [f"{n}{MARK}" if fine_tunes(n) else n for n in names])
        axis.set_ylim(-0.6, len(names) - 0.4)
        axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
    note = "Mean and 95 % interval over seeds and test videos; the dashed line is Offline."
    return Picture(style.save(figure, folder, f"omega-{bench.slug}"),
                   f"Ω_all with intervals: {bench.title}", note)  # fmt: skip


def maml(found: Sorted, bench: Bench, folder: Path) -> Picture | None:
    """μ_all of VERSE, its variants and the two forms of look-ahead MAML."""
    cells = found.main(bench)
    rivals = [name for name in ("la-maml", "c-maml") if name in cells]
    names = [name for name in cells if name.startswith("verse")] + rivals
    orders = [o for o in orders_of(cells) if all(o in cells[n] for n in rivals)]
    if not rivals or "verse" not in cells or not orders:
        return None
    colour = style.colours(names)
    values = {name: {o: statistics.mu(cells[name][o]) for o in orders if o in cells[name]}
              for name in names}  # fmt: skip
    return _grouped(values, orders, colour, folder, f"maml-{bench.slug}",
                    f"VERSE and look-ahead MAML: {bench.title}", "μ_all")  # fmt: skip


def ablation(found: Ablation, folder: Path) -> Picture:
    """A line per ordering, or bars where values are kinds."""
    orders = list(found.cells)
    metric = "Ω_all" if found.knob.metric == "omega" else "μ_all"
    if found.knob.bars:
        shades = ("#9aa5b1", "#1f6fb4", "#2a9d8f", "#c8102e")
        colour = {str(v): shades[-1 - i] for i, v in enumerate(reversed(found.values))}
        values = {str(v): {o: found.cells[o][v] for o in orders if v in found.cells[o]}
                  for v in found.values}  # fmt: skip
        return _grouped(values, orders, colour, folder, found.name, found.title, metric)
    figure, (axis,) = style.panels(1, 3.6)
    shades = ("#1f6fb4", "#2a9d8f", "#f0780a", "#c8102e")
    for order, shade in zip(orders, shades, strict=False):
        by = {value: found.cells[order][value] for value in found.values
              if value in found.cells[order]}  # fmt: skip
        # side by side, so that whiskers of orderings do not cover each other
        shift = 0.06 * (orders.index(order) - (len(orders) - 1) / 2)
        places = [found.values.index(value) + shift for value in by]
        means = np.array([e.mean for e in by.values()])
        ends = np.array([[e.low, e.high] for e in by.values()])
        axis.errorbar(places, means, yerr=np.abs(ends - means[:, None]).T, fmt="o-", color=shade,
                      label=order, markersize=4.5, linewidth=1.8, elinewidth=1)  # fmt: skip
    axis.set_xticks(range(len(found.values)), [f"{value:g}" for value in found.values])
    axis.set_xlabel(found.knob.title)
    axis.set_ylabel(metric)
    figure.legend(loc="outside lower center", ncols=4)
    return Picture(style.save(figure, folder, found.name), found.title,
                   "Mean and 95 % interval, on the seeds that all values have.")  # fmt: skip


def _grouped(
    values: dict[str, dict[str, Estimate]],
    orders: Sequence[str],
    colour: dict[str, str],
    folder: Path,
    name: str,
    title: str,
    metric: str,
) -> Picture:
    """Groups of bars: an ordering each, a bar for every series."""
    figure, (axis,) = style.panels(1, 3.6)
    figure.set_size_inches(max(5.2, 1.2 + 0.36 * len(values) * len(orders)), 3.6)
    width = 0.8 / len(values)
    for i, (series, by) in enumerate(values.items()):
        place = [orders.index(order) + (i - (len(values) - 1) / 2) * width for order in by]
        means = np.array([e.mean for e in by.values()])
        ends = np.array([[e.low, e.high] for e in by.values()]).reshape(-1, 2)
        axis.bar(place, means, width * 0.92, color=colour[series], label=series,
                 yerr=np.abs(ends - means[:, None]).T,
                 error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "#222222"})  # fmt: skip
    axis.set_xticks(range(len(orders)), list(orders))
    axis.set_ylabel(metric)
    axis.set_ylim(bottom=0)
    axis.grid(visible=False, axis="x")
    figure.legend(loc="outside lower center", ncols=min(4, len(values)))
    note = "Mean and 95 % interval over seeds and test videos."
    return Picture(style.save(figure, folder, name), title, note)
