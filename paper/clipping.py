"""VERSE with clipped gradients and without: where it diverges, and what clipping changes.

The trials are those of ``recipes/tuning-rates.toml`` on validation videos; on test videos the tuned
VERSE of ``recipes/scale-*.toml`` stands beside that of ``recipes/unclipped.toml``.
``python -m paper.pages`` writes this into docs/results/virtual.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from paper.ablations import on_common_seeds
from paper.reading import runs_of
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.reports import statistics
from verse.reports.page import Section
from verse.reports.statistics import difference_cell
from verse.reports.tables import Table, Text

SETS = ("eth80", "icub_camera", "gtsrb", "gtsrb_full", "asl")
ORDERS = ("class-instance", "iid")
NEAR_CHANCE = 2
BETA = 0.03
UNCLIPPED = {0.03: "unclipped.toml", 0.005: "virtual-{data}.toml"}
"""α → the recipe of the runs without clipping."""
TEXT = (
    "The paper does not clip gradients. Every method could choose to clip or not in "
    "[tuning](tuning.md), and VERSE chose to clip on {clipped} of {sets} sets. Here a linear "
    "layer is trained; deeper parts diverge at smaller rates."
)


def section(tested: Iterable[Result], tried: Iterable[Result], recipes: Path) -> Section:
    """Both tables, as far as their runs are finished."""
    clipped = sum(any(run.settings["clip"] for run in _tuned(recipes, data)) for data in SETS)
    found = Section("Clipping", TEXT.format(clipped=clipped, sets=len(SETS)))
    rates = rates_table(tried, runs_of(recipes / "tuning-rates.toml"))
    if rates is not None:
        found.text += f" {sentence(rates)}"
    found.add(rates, compared(tested, recipes))
    if not found.parts:
        found.text += "\n\nNo run of `recipes/unclipped.toml` is finished yet."
    return found


def sentence(rates: Table) -> str:
    """How many trials diverged, and from which rate on."""
    parts = []
    for clipped, how in ((False, "Without clipping"), (True, "with it")):
        mine = [r for r in rates.records if r["clipped"] is clipped]
        spoilt = [r["rate"] for r in mine if r["diverged"]]
        least = f", none at a rate below {min(spoilt):g}" if spoilt else ""
        parts.append(f"{how} {len(spoilt)} of {len(mine)} trials diverged{least}")
    return f"{'; '.join(parts)}."


def diverged(result: Result) -> bool:
    """Whether samples were refused because values were not finite, or the end is near chance."""
    return result.refused > 0 or result.alpha[-1] <= NEAR_CHANCE / len(result.classes)


def rates_table(tried: Iterable[Result], runs: Iterable[Run]) -> Table | None:
    """A row for each set, ordering and rate."""
    known = {r.id: r for r in tried}
    cells: dict[tuple[str, str], dict[tuple[float, bool], Result]] = {}
    for run in runs:
        if run.learner == "verse" and run.id in known:
            where = run.dataset.removeprefix("folder:"), run.order
            how = float(run.settings["beta"]), run.settings["clip"] is not None
            cells.setdefault(where, {})[how] = known[run.id]
    rows, records = [], []
    for (data, order), by in sorted(cells.items(), key=_in_order):
        for rate in sorted({rate for rate, _ in by}):
            row = [Text(data), Text(order), Text(f"{rate:g}")]
            for clipped in (True, False):
                r = by.get((rate, clipped))
                mark = " ✗" if r is not None and diverged(r) else ""
                row.append(Text("–" if r is None else f"{r.mu_all:.3f}{mark}"))
                if r is not None:
                    about = {"dataset": data, "order": order, "rate": rate, "clipped": clipped}
                    records.append(about | {"mu_all": r.mu_all, "diverged": diverged(r)})
            rows.append(row)
    head = ["data", "ordering", "rate", "clipped", "not clipped"]
    note = (
        "μ_all on validation videos, one seed, α = β = the rate. ✗: diverged, which means that "
        "samples were refused because gradients were not finite, or that the accuracy at the end "
        f"is at most {NEAR_CHANCE} times chance."
    )
    title = "Rates with and without clipping"
    return Table("clipping-rates", title, head, rows, note, records) if rows else None


def _in_order(item: tuple[tuple[str, str], object]) -> tuple[int, int]:
    (data, order), _ = item
    return SETS.index(data), ORDERS.index(order)


def compared(tested: Iterable[Result], recipes: Path) -> Table | None:
    """On test videos: the tuned VERSE, clipped, and VERSE without clipping."""
    known = {r.id: r for r in tested}
    pairs: dict[tuple[str, str, float], tuple[list[Result], list[Result]]] = {}
    for data, order, (alpha, recipe) in itertools.product(SETS, ORDERS, UNCLIPPED.items()):
        tuned = _verse(recipes / f"scale-{data}.toml", data, order)
        named = _verse(recipes / recipe.format(data=data), data, order)
        both = {
            "clipped": [known[run.id] for run in tuned if run.id in known],
            "free": [
                known[run.id]
                for run in named
                if run.id in known
                and (run.settings["alpha"], run.settings["beta"]) == (alpha, BETA)
            ],
        }
        if all(both.values()):
            common = on_common_seeds(both)
            pairs[data, order, alpha] = common["clipped"], common["free"]
    if not pairs:
        return None
    swapped = {place: (free, clipped) for place, (clipped, free) in pairs.items()}
    leads = statistics.paired_differences(swapped, "mu")
    rows, records = [], []
    for (data, order, alpha), (clipped, free) in pairs.items():
        lead = leads.get((data, order, alpha))
        means = [str(statistics.mu(runs)) for runs in (clipped, free)]
        spoilt = str(sum(map(diverged, free)))
        cells = [Text(data), Text(order), Text(means[0]), Text(f"{alpha:g}"), Text(means[1])]
        rows.append([*cells, difference_cell(lead), Text(spoilt)])
        records.append(
            {"dataset": data, "order": order, "n": len(free), "diverged": int(spoilt)}
            | {"clipped": statistics.mu(clipped).mean, "free": statistics.mu(free).mean}
            | {"alpha": alpha}
            | ({} if lead is None else {"difference": lead.mean, "p": lead.p})
        )
    head = ["data", "ordering", "clipped, as tuned", "α", "not clipped", "difference", "diverged"]
    note = (
        "μ_all on test videos on common seeds, with its 95 % interval. Not clipped: β = 0.03, with "
        "α = β, the best rate without clipping on every set of those that tuning tried with α = β, "
        "and on eth80 also with the paper's α = 0.005. Then the paired difference, not clipped − "
        "clipped, with Holm's correction over the table (bold: beyond chance), and how many runs "
        "without clipping diverged."
    )
    return Table("clipping", "VERSE clipped and not clipped", head, rows, note, records)


def _tuned(recipes: Path, data: str) -> list[Run]:
    return [run for run in runs_of(recipes / f"scale-{data}.toml") if run.learner == "verse"]


def _verse(recipe: Path, data: str, order: str) -> list[Run]:
    """The runs of VERSE on the whole stream; none where there is no such recipe."""
    return [
        run
        for run in (runs_of(recipe) if recipe.exists() else ())
        if (run.learner, run.dataset, run.order) == ("verse", f"folder:{data}", order)
        and not run.length
    ]
