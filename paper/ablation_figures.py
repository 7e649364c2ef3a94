"""The figures of choices: one knob turned, and VERSE beside look-ahead MAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paper.ablations import Ablation
from verse.reports import statistics, style
from verse.reports.cells import Bench, SortedResults, is_verse, orders_of
from verse.reports.figures import ReportFigure
from verse.reports.statistics import Estimate

MARKERS = "osD^vPX"
NOTE = (
    "Mean and 95 % interval over seeds and test videos. Differences are paired, so they are more "
    "precise than these intervals suggest: the tables say which are significant."
)


def maml(found: SortedResults, bench: Bench, folder: Path) -> ReportFigure | None:
    """μ_all of VERSE, its variants and the two forms of look-ahead MAML."""
    cells = found.main(bench)
    rivals = [name for name in ("la-maml", "c-maml") if name in cells]
    names = [name for name in cells if is_verse(name)] + rivals
    orders = [o for o in orders_of(cells) if all(o in cells[n] for n in rivals)]
    if not rivals or "verse" not in cells or not orders:
        return None
    colour = {name: look.colour for name, look in style.looks(names).items()}
    values = {
        name: {o: statistics.mu(cells[name][o]) for o in orders if o in cells[name]}
        for name in names
    }
    return _grouped(
        values,
        orders,
        colour,
        folder,
        f"maml-{bench.slug}",
        f"VERSE and look-ahead MAML: {bench.title}",
        "μ_all",
    )


def ablation(found: Ablation, folder: Path) -> ReportFigure:
    """A line per ordering, or bars where values are kinds."""
    orders = list(found.cells)
    if found.knob.bars:
        shades = style.LEVELS[-len(found.values) :]
        colour = {str(v): shades[i % len(shades)] for i, v in enumerate(found.values)}
        values = {
            str(v): {o: found.cells[o][v] for o in orders if v in found.cells[o]}
            for v in found.values
        }
        return _grouped(
            values, orders, colour, folder, found.name, found.title, found.symbol, dots=True
        )
    figure, (axis,) = style.panels(1, 3.6)
    for order in orders:
        by = {
            value: found.cells[order][value]
            for value in found.values
            if value in found.cells[order]
        }
        # side by side, so that whiskers of orderings do not cover each other
        shift = 0.06 * (orders.index(order) - (len(orders) - 1) / 2)
        look = style.ORDERS[order]
        style.draw_estimates(
            axis,
            {found.values.index(value) + shift: e for value, e in by.items()},
            fmt=f"{look.marker}-",
            color=look.colour,
            label=order,
            markersize=4.5,
            linewidth=1.8,
            elinewidth=1,
        )
    axis.set_xticks(range(len(found.values)), [f"{value:g}" for value in found.values])
    axis.set_xlabel(found.knob.title)
    axis.set_ylabel(found.symbol)
    figure.legend(loc="outside lower center", ncols=4)
    return ReportFigure(
        style.save(figure, folder, found.name),
        found.title,
        f"On the seeds that all values have. {NOTE}",
    )


def _grouped(
    values: dict[str, dict[str, Estimate]],
    orders: Sequence[str],
    colour: dict[str, str],
    folder: Path,
    name: str,
    title: str,
    metric: str,
    *,
    dots: bool = False,
) -> ReportFigure:
    """Groups of bars or, where small differences matter, of dots: an ordering each."""
    figure, (axis,) = style.panels(1, 3.6)
    figure.set_size_inches(max(5.2, 1.2 + 0.36 * len(values) * len(orders)), 3.6)
    width = 0.8 / len(values)
    for i, (series, by) in enumerate(values.items()):
        place = [orders.index(order) + (i - (len(values) - 1) / 2) * width for order in by]
        if dots:
            style.draw_estimates(
                axis,
                dict(zip(place, by.values(), strict=True)),
                fmt=MARKERS[i % len(MARKERS)],
                label=series,
                color=colour[series],
                markersize=6,
                elinewidth=1.4,
            )
        else:
            axis.bar(
                place,
                [e.mean for e in by.values()],
                width * 0.92,
                color=colour[series],
                label=series,
                yerr=style.reach(by.values()),
                error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "#222222"},
            )
    if not dots:
        axis.set_ylim(bottom=0)  # after the last series: it ends the scaling to what is drawn
    axis.set_xticks(range(len(orders)), list(orders))
    axis.set_xlim(-0.7, len(orders) - 0.3)  # one group alone stays together
    axis.set_ylabel(metric)
    axis.grid(visible=False, axis="x")
    figure.legend(loc="outside lower center", ncols=min(4, len(values)))
    return ReportFigure(style.save(figure, folder, name), title, NOTE)
