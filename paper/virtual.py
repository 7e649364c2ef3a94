"""The virtual step itself, and VERSE's other parts, at the paper's memory with ten seeds.

The runs are those of ``recipes/virtual-*.toml`` (α × β, unclipped) and ``recipes/parts-*.toml``
(one thing changed in the tuned VERSE). ``python -m paper.pages`` writes docs/results/virtual.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from paper.clipping import diverged
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.reports import statistics, style
from verse.reports.cells import Results, format_settings
from verse.reports.figures import ReportFigure
from verse.reports.page import Section
from verse.reports.statistics import ENOUGH, Estimate, difference_cell
from verse.reports.tables import Table, Text, format_signed

SETS = ("eth80", "asl")
PARTS_ORDER = "class-instance"
TITLE = "The virtual step, and VERSE's other parts"
QUESTION = (
    "Does the virtual step help, and when? VERSE takes a step of size α from the new sample alone "
    "before it computes the step of size β that it keeps. With α = 0 there is no virtual step. The "
    "runs of the figure and of the tables about two rates are not clipped, as in the paper; the "
    "parts further down are changed in the tuned VERSE, which clips gradients."
)
NONE = "No run of `recipes/virtual-*.toml` is finished yet: `python -m paper.grid` makes them."
NO_PARTS = "No run of `recipes/parts-*.toml` is finished yet."
LINEAR = 0.001
TICKS = (-1, -0.1, -0.01, -0.001, 0, 0.001, 0.01, 0.1)


class Rates(NamedTuple):
    """Of VERSE's two steps."""

    alpha: float
    beta: float


class Place(NamedTuple):
    """Where something was tried."""

    data: str
    order: str


Tried = dict[Rates, Results]


def collect(results: Iterable[Result], runs: Iterable[Run]) -> dict[Place, Tried]:
    """(data set, ordering) → (α, β) → runs, of those that a recipe names."""
    wanted = {run.id for run in runs}
    found: dict[Place, Tried] = {}
    for r in sorted(results, key=lambda r: r.run.seed):
        if r.id in wanted:
            place = Place(r.run.dataset.removeprefix("folder:"), r.run.order)
            rates = Rates(float(r.run.settings["alpha"]), float(r.run.settings["beta"]))
            found.setdefault(place, {}).setdefault(rates, []).append(r)
    return dict(sorted(found.items(), key=lambda item: (SETS.index(item[0].data), item[0].order)))


def gains(tried: Tried) -> dict[Rates, Estimate]:
    """What the virtual step adds to μ_all at the same β, with Holm's correction over all of them;
    only where there are enough common seeds, and where VERSE learns without the virtual step: a
    difference between two networks that have diverged says nothing."""
    found = {}
    left_out = spoilt(tried)
    for rates, runs in sorted(tried.items(), key=lambda item: item[0][::-1]):
        without = tried.get(Rates(0.0, rates.beta))
        if rates.alpha and without and rates.beta not in left_out:
            gain = statistics.difference(runs, without, "mu")
            if gain is not None and gain.enough:
                found[rates] = gain
    return statistics.adjust(found)


def spoilt(tried: Tried) -> list[float]:
    """Every β with which a run without the virtual step diverged."""
    return sorted(
        rates.beta for rates, runs in tried.items() if not rates.alpha and any(map(diverged, runs))
    )


def stream_length(tried: Tried) -> int:
    """The length of the streams."""
    return next(iter(tried.values()))[0].frames


def sentence(
    place: Place, found: Mapping[Rates, Estimate], frames: int, left_out: Sequence[float] = ()
) -> str:
    """In how many combinations it helps, hurts, or neither, and the largest gain."""
    where = f"{place.data}, {place.order}, {frames:,} frames"
    betas = " and ".join(f"β = {beta:g}" for beta in left_out)
    verb = "is" if len(left_out) == 1 else "are"
    rest = f"{betas} diverged already without the virtual step and {verb} left out."
    if not found:
        few = f"fewer than {ENOUGH} common seeds so far."
        return f"{where}: {rest if left_out else few}"
    helps = sum(e.low > 0 for e in found.values())
    hurts = sum(e.high < 0 for e in found.values())
    best = max(found, key=lambda rates: found[rates].mean)
    e = found[best]
    return (
        f"{where}: of {len(found)} combinations of α and β it helps in {helps}, hurts in {hurts}; "
        f"the largest gain is {e.signed} at α = {best.alpha:g}, β = {best.beta:g}."
        f"{f' {rest}' if left_out else ''}"
    )


def sections(results: Iterable[Result], recipes: Path, folder: Path) -> list[Section]:
    """The page: the virtual step, then one thing changed at a time."""
    results = list(results)
    named = [run for data in SETS for run in read_recipe(recipes / f"virtual-{data}.toml").runs]
    found = collect(results, named)
    first = Section(TITLE, QUESTION if found else f"{QUESTION}\n\n{NONE}")
    if found:
        lines = [
            f"- {sentence(place, gains(tried), stream_length(tried), spoilt(tried))}"
            for place, tried in found.items()
        ]
        first.text += "\n\n" + "\n".join(lines)
        first.add(draw(found, folder), *tables(found))
    text = (
        "The tuned, clipped VERSE, and the same with one thing changed. The runs on asl have half "
        "of its frames and a memory that grows with the classes, so their accuracies are lower "
        "than in the main tables."
    )
    parts = Section("One thing changed", text)
    for data in SETS:
        parts.add(parts_table(data, results, read_recipe(recipes / f"parts-{data}.toml").runs))
    if not parts.parts:
        parts.text += f"\n\n{NO_PARTS}"
    return [first, parts]


def draw(found: Mapping[Place, Tried], folder: Path) -> ReportFigure:
    """What the virtual step adds, a panel for each data set and ordering, a line for each β."""
    figure, axes = style.panels(len(found), 2.8, rows=2 if len(found) > 2 else 1)
    betas = sorted({rates.beta for tried in found.values() for rates in tried})
    for axis, (place, tried) in zip(axes, found.items(), strict=True):
        known = gains(tried)
        alphas = sorted({rates.alpha for rates in known})
        for number, beta in enumerate(betas):  # a β has one colour in all panels
            mine = {rates.alpha: e for rates, e in known.items() if rates.beta == beta}
            if not mine:
                continue
            colour = style.LEVELS[number % len(style.LEVELS)]
            shift = 0.08 * (number - 1)  # whiskers must not cover each other
            style.draw_estimates(
                axis,
                {alphas.index(alpha) + shift: e for alpha, e in mine.items()},
                color=colour,
                marker="osDP"[number % 4],
                ms=4,
                lw=1.2,
                elinewidth=0.8,
                label=f"β = {beta:g}",
            )
        axis.axhline(0, color=style.BOUND, linewidth=1)
        # from a thousandth to one half: linear only about zero
        axis.set_yscale("symlog", linthresh=LINEAR)
        axis.set_yticks(TICKS, [format_signed(tick) for tick in TICKS])
        axis.minorticks_off()
        axis.set_ylim(TICKS[0], TICKS[-1])
        axis.set_xlim(-0.3, max(len(alphas), 1) - 0.7)
        axis.set_xticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
        axis.set_title(", ".join(place))
        axis.set_xlabel("α, size of the virtual step")
        axis.set_ylabel("gain in μ_all")
    style.add_common_legend(figure, axes)
    note = (
        "Paired difference in μ_all to α = 0 at the same β with its 95 % interval over seeds and "
        "test videos, with Holm's correction over all points of a panel. The axis is "
        f"logarithmic beyond ± {LINEAR:g}. Left out: a β with which VERSE diverges without the "
        "virtual step already."
    )
    return ReportFigure(
        style.save(figure, folder, "virtual"), "What the virtual step adds to μ_all", note
    )


def tables(found: Mapping[Place, Tried]) -> list[Table]:
    """One for each data set: orderings and β against α."""
    listed = []
    for data in dict.fromkeys(place.data for place in found):
        mine = {place: tried for place, tried in found.items() if place.data == data}
        alphas = sorted({rates.alpha for tried in mine.values() for rates in tried})
        rows, records = [], []
        for place, tried in mine.items():
            known, left_out = gains(tried), spoilt(tried)
            for beta in sorted({rates.beta for rates in tried}):
                row = [Text(f"{place.order}, β = {beta:g}")]
                for alpha in alphas:
                    rates = Rates(alpha, beta)
                    runs = tried.get(rates)
                    cell = Text("–") if not runs else _cell(runs, known.get(rates))
                    row.append(
                        cell._replace(text=f"{cell.text} ✗") if runs and beta in left_out else cell
                    )
                    if runs:
                        gain = known.get(rates)
                        told = {} if gain is None else {"gain": gain.mean, "p": gain.p}
                        records.append(
                            {"dataset": data, "order": place.order, **rates._asdict()}
                            | statistics.mu(runs).record
                            | told
                        )
                rows.append(row)
        note = (
            "μ_all, and in brackets the gain over α = 0 at the same β. ▲ it helps, ▼ it hurts, "
            "beyond chance with Holm's correction over all gains of a data set and ordering. ✗ "
            "with this β at least one run diverged without the virtual step already, so that its "
            "gains are left out."
        )
        head = ["ordering", *(f"α = {alpha:g}" for alpha in alphas)]
        title = f"Two rates of VERSE on {data}"
        listed.append(Table(f"virtual-{data}", title, head, rows, note, records))
    return listed


def _cell(runs: Results, gain: Estimate | None) -> Text:
    mean = f"{statistics.mu(runs).mean:.3f}"
    if gain is None:
        return Text(mean)
    mark = " ▲" if gain.low > 0 else " ▼" if gain.high < 0 else ""
    return Text(f"{mean} ({format_signed(gain.mean)}{mark})", gain.low > 0)


def parts_table(data: str, results: Iterable[Result], runs: Sequence[Run]) -> Table | None:
    """A row for each change: μ_all, and the paired difference to the tuned VERSE."""
    order: dict[str, str] = {}
    for run in runs:
        if run.order == PARTS_ORDER:  # the others are on the page of ablations
            order.setdefault(run.id, _key(run))  # a value that is tried may be the tuned one
    by: dict[str, Results] = {key: [] for key in order.values()}
    for r in sorted(results, key=lambda r: r.run.seed):
        if r.id in order:
            by[order[r.id]].append(r)
    base = _key(runs[0])
    there = {key: found for key, found in by.items() if found}
    if not there or base not in there:
        return None
    tuned = there[base][0].run
    sure = {}
    for key, found in there.items():
        run = found[0].run
        # another method is compared with VERSE at the same memory
        same = replace(tuned, capacity=run.capacity)
        rival = base if run.learner == tuned.learner else _key(same)
        lead = statistics.difference(found, there.get(rival, []), "mu") if key != rival else None
        if lead is not None and lead.enough:
            sure[key] = lead
    adjusted = statistics.adjust(sure)
    rows, records = [], []
    for key, found in there.items():
        lead, mu = adjusted.get(key), statistics.mu(found)
        change = _change(found[0].run, tuned)
        rows.append([Text(change), Text(str(mu)), difference_cell(lead), Text(str(len(found)))])
        records.append(
            {"dataset": data, "change": change, **mu.record}
            | ({} if lead is None else {"lead": lead.mean, "p": lead.p})
        )
    note = (
        f"{there[base][0].frames:,} frames. "
        f"μ_all in {PARTS_ORDER} order with its 95 % interval; then the paired difference to the "
        "first row on common seeds, of another method to VERSE with the same memory, with Holm's "
        f"correction over the table. Bold: beyond chance. Dash: fewer than {ENOUGH} common seeds."
    )
    head = ["change", "μ_all", "difference", "seeds"]
    return Table(f"parts-{data}", f"VERSE's parts on {data}", head, rows, note, records)


def _key(run: Run) -> str:
    """What tells the rows of a table apart: all but the seed."""
    settings = json.dumps(dict(run.settings), sort_keys=True)
    return f"{run.learner} {settings} {run.capacity} {run.own_memory}"


def _change(run: Run, base: Run) -> str:
    """What differs from the first row, in words."""
    parts = [] if run.learner == base.learner else [run.learner]
    if run.learner == base.learner:
        changed = {k: v for k, v in run.settings.items() if base.settings.get(k, "") != v}
        parts += [format_settings(changed)] if changed else []
    if run.capacity != base.capacity:
        parts.append(f"memory {run.capacity}")
    if run.own_memory != base.own_memory:
        parts.append(f"policy {run.own_memory}")
    return ", ".join(parts) or "as tuned"
