"""The paper's own figures: VERSE's leads in every cell, and its losses over a stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from paper.source import PaperResults
from paper.verdicts import WORDS, Verdict
from verse import streams
from verse.configuration import DEFAULT_LEARNER
from verse.reports import style
from verse.reports.cells import orders_of
from verse.reports.figures import ReportFigure, dots
from verse.reports.scores import cell_names
from verse.reports.statistics import Estimate


def leads(listed: Sequence[Verdict], folder: Path) -> ReportFigure | None:
    """The lead over the best method that the paper compares, in every cell; one panel for VERSE
    and each variant."""
    known = [v for v in listed if v.lead_mean is not None]
    if not known:
        return None
    names = list(dict.fromkeys(v.learner for v in known))
    names.sort(key=lambda name: (name != "verse", name))
    cells = cell_names([vars(v) for v in known])
    rows = {cell: row for row, cell in enumerate(reversed(cells))}
    labels = list(reversed(cells.values()))
    figure, axes = style.panels(len(names), 1.3 + 0.24 * len(labels), width=4.4)
    for axis, name in zip(axes, names, strict=True):
        for v in (v for v in known if v.learner == name):
            e = Estimate(v.lead_mean or 0.0, v.lead_low or 0.0, v.lead_high or 0.0, v.n)
            row, colour = rows[v.bench, v.order], style.VERDICTS[v.verdict]
            dots(axis, {row: e}, colour, hollow=v.verdict in ("tied", "undecided"))
            axis.annotate(
                v.rival,
                (e.mean, row),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=6.5,
                color="#444444",
                bbox={"fc": "white", "ec": "none", "pad": 0.6},
            )
        axis.axvline(0, color=style.BOUND, linewidth=1)
        axis.set_title(name)
        axis.set_xlabel("lead in μ_all over the best of the paper's methods")
        axis.set_yticks(range(len(labels)), labels)
        axis.set_ylim(-0.6, len(labels) - 0.2)
    handles = [
        Line2D(
            [],
            [],
            color=colour,
            marker="o",
            linestyle="-",
            label=WORDS[word],
            mfc="white" if word in ("tied", "undecided") else colour,
        )
        for word, colour in style.VERDICTS.items()
        if any(v.verdict == word for v in known)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    note = (
        "Paired difference in μ_all on common seeds with its 95 % interval; the name above a dot "
        "is the other method. An interval left of zero: VERSE is behind. First: it leads every "
        "method of the paper's comparison significantly, not only this one."
    )
    if len(names) > 1:
        note += " Each panel has its own scale."
    title = "Lead of VERSE over the best method of the paper's comparison"
    return ReportFigure(style.save(figure, folder, "leads"), title, note)


def losses(found: PaperResults, folder: Path) -> list[ReportFigure]:
    """Both losses of VERSE over the stream, one figure for each data set and its settings."""
    pictures: list[ReportFigure] = []
    for (bench, settings), mine in found.losses_of_verse.items():
        further = sum(p.name.startswith(f"losses-{bench.slug}") for p in pictures)
        orders = [o for o in streams.names() if any(c.result.run.order == o for c in mine)]
        figure, axes = style.panels(len(orders), 2.8, width=4.6, rows=2 if len(orders) > 2 else 1)
        for axis, order in zip(axes, orders, strict=True):
            there = [c for c in mine if c.result.run.order == order]
            for name, label, colour in (
                ("loss_v", "L_v, of the virtual step", "#0072b2"),
                ("loss", "L, of the global step", "#d55e00"),
            ):
                length = min(len(c.positions) for c in there)
                values = np.array([c.losses[name][:length] for c in there])  # [seeds, points]
                width = max(1, length // 25)
                smooth = np.convolve(values.mean(0), np.ones(width) / width, mode="valid")
                x = np.array(there[0].positions[:length], dtype=np.float64) / there[0].result.frames
                axis.plot(x, values.mean(0), color=colour, linewidth=0.6, alpha=0.35)
                axis.plot(x[width - 1 :], smooth, color=colour, linewidth=1.8, label=label)
            axis.set_title(order)
            axis.set_ylim(bottom=0)
            axis.set_xlabel("share of the stream")
            axis.set_ylabel("loss")
            axis.xaxis.set_major_formatter("{x:.0%}")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        name = f"losses-{bench.slug}{f'-{further}' if further else ''}"
        note = f"Mean over seeds at every 16th frame (thin), its running mean (thick); {settings}."
        title = f"The losses of VERSE: {bench.title}"
        pictures.append(ReportFigure(style.save(figure, folder, name), title, note))
    return pictures


SHOWN = 10  # methods in the overview, beside VERSE and the default
COLUMNS = 4  # of the overview


def overview(found: PaperResults, listed: Sequence[dict[str, Any]], folder: Path) -> ReportFigure:
    """μ_all with its interval: the orderings of a data set side by side."""
    orders = {bench: orders_of(found.main(bench)) for bench in found.compared}
    # those with most orderings first: the others share rows
    benches = sorted(orders, key=lambda bench: -len(orders[bench]))
    panels = sum(map(len, orders.values()))
    columns = min(COLUMNS, panels)
    rows = -(-panels // columns)
    height = 0.7 + 0.16 * (SHOWN + 2)
    figure, axes = style.panels(rows * columns, height, width=2.9, rows=rows, share=False)
    for axis in axes[panels:]:
        axis.set_axis_off()
    limited, free = False, iter(axes)
    for bench in benches:
        mine = [r for r in listed if r["bench"] == bench.slug and r["rank"] is not None]
        mean = {
            name: np.mean([r["rank"] for r in mine if r["learner"] == name])
            for name in {r["learner"] for r in mine}
        }
        names = sorted(mean, key=lambda name: (mean[name], name))[:SHOWN]
        others = ("verse", DEFAULT_LEARNER)
        names += [name for name in others if name in mean and name not in names]
        for column, order in enumerate(orders[bench]):
            axis = next(free)
            by = {r["learner"]: r for r in mine if r["order"] == order}
            for place, name in enumerate(reversed(names)):
                if name in by:
                    r = by[name]
                    e = Estimate(r["mu_mean"], r["mu_low"], r["mu_high"], r["n"])
                    dots(axis, {float(place): e}, style.shade(name), hollow=False)
            ceiling = next((r["ceiling"] for r in by.values() if r["ceiling"]), None)
            if ceiling is not None and ceiling < 1:
                axis.axvline(ceiling, color=style.BOUND, linestyle=":", linewidth=1)
                limited = True
            axis.set_yticks(
                range(len(names)),
                [""] * len(names) if column else list(reversed(names)),
                fontsize=7,
            )
            axis.set_ylim(-0.6, len(names) - 0.4)
            axis.tick_params(axis="x", labelsize=7)
            axis.set_xlabel("μ_all", fontsize=7)
            axis.set_title(f"{bench.dataset}, {order}", fontsize=8)
    note = (
        "Mean accuracy over the stream with its 95 % interval over seeds and test videos. Of each "
        f"data set the {SHOWN} streaming methods with the best mean rank, VERSE in red, its "
        "variants in orange."
    )
    if limited:
        note += (
            " Dotted: the share of test frames whose class was shown. No mean can exceed it; "
            "intervals are not cut there."
        )
    return ReportFigure(style.save(figure, folder, "overview"), "μ_all of the best methods", note)
