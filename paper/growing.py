"""What a reservoir loses whose room grows with the classes, where they come one after the other.

The runs are those of ``recipes/growing.toml``, beside those of ``recipes/scale-*.toml`` with room
for all classes from the start. ``python -m paper.pages`` writes this into docs/results/causes.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paper.ablations import on_common_seeds
from paper.reading import runs_of
from verse.experiments.result import Result
from verse.reports import statistics
from verse.reports.cells import Results
from verse.reports.page import Section
from verse.reports.statistics import difference_cell
from verse.reports.tables import Table, Text

TEXT = (
    "In the comparison memory has room for 23 samples of every class from the start (`23 x "
    "classes`), as in the paper. On a live stream nobody knows how many classes will come, and a "
    "budget of `23 per class` grows with them. A reservoir then fills the room that comes with a "
    "new class with that class's first frames, which are nearly the same picture, and each later "
    "class's frames replace others at random. The loss, where classes come in turn:"
)
Pair = tuple[Results, Results]
"""With room from the start, and growing."""


def section(results: Sequence[Result], recipes: Path) -> Section:
    """Text and table, as far as the runs are finished."""
    found = Section("A memory that grows with the classes", TEXT)
    pairs = collect(results, recipes)
    if pairs:
        found.add(table(pairs))
    else:
        found.text += "\n\nNo run of `recipes/growing.toml` is finished yet."
    return found


def collect(results: Sequence[Result], recipes: Path) -> dict[tuple[str, str], Pair]:
    """(Data set, learner) → both, on common seeds."""
    known = {r.id: r for r in results}
    pairs: dict[tuple[str, str], Pair] = {}
    growing = [known[run.id] for run in runs_of(recipes / "growing.toml") if run.id in known]
    places = dict.fromkeys((r.run.dataset.removeprefix("folder:"), r.run.learner) for r in growing)
    for data, learner in places:
        mine = [r for r in growing if (r.run.dataset, r.run.learner) == (f"folder:{data}", learner)]
        fixed = [
            known[run.id]
            for run in runs_of(recipes / f"scale-{data}.toml")
            if (run.learner, run.order) == (learner, "class-instance") and run.id in known
        ]
        if fixed:
            both = on_common_seeds({"fixed": fixed, "growing": mine})
            pairs[data, learner] = both["fixed"], both["growing"]
    return pairs


def table(pairs: dict[tuple[str, str], Pair]) -> Table:
    """A row for each data set and learner."""
    swapped = {place: (growing, fixed) for place, (fixed, growing) in pairs.items()}
    sure = statistics.paired_differences(swapped, "mu")
    rows, records = [], []
    for (data, learner), both in pairs.items():
        loss = sure.get((data, learner))
        means = [statistics.mu(runs).mean for runs in both]
        cells = [Text(data), Text(f"`{learner}`"), *(Text(f"{mean:.3f}") for mean in means)]
        rows.append([*cells, difference_cell(loss)])
        records.append(
            {"dataset": data, "learner": learner, "fixed": means[0], "growing": means[1]}
            | ({} if loss is None else {"difference": loss.mean, "n": loss.n, "p": loss.p})
        )
    note = (
        "μ_all in class-instance on common seeds; then growing − fixed, with Holm's correction "
        "over the table (bold: beyond chance)."
    )
    head = ["data", "method", "room from the start", "growing", "difference"]
    return Table("growing", "Room from the start, or growing", head, rows, note, records)
