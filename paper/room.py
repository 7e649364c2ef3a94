"""Whether the tuned learning rates and clipping hold for the memory of the comparison.

Tuning was done with a memory that grows with the classes. ``recipes/tuning-room.toml`` tries rate
and clipping again with room for all classes from the start. ``python -m paper.pages`` writes this
into docs/results/tuning.md.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paper.reading import runs_of
from paper.tune import rate_of
from verse.experiments.result import Result
from verse.reports.page import Section
from verse.reports.tables import Table, Text, format_signed

TITLE = "Rates and clipping with room for all classes"
TEXT = (
    "The stages above had a memory of 10 samples for every class seen so far, the comparison has "
    "room for all classes from the start. Here the replay methods try learning rate and clipping "
    "once more with room from the start, on the same validation videos; their other settings stay "
    "as chosen. The comparison keeps what the two stages chose."
)
NONE = "No method has all its trials of `recipes/tuning-room.toml` yet."
Settings = Mapping[str, Any]
Way = tuple[float, bool]
"""The learning rate, and whether gradients are clipped."""


def section(results: Iterable[Result], recipes: Path) -> Section:
    """How much better the best of the new trials is than what was chosen."""
    found = Section(TITLE, TEXT)
    table = tabulate({r.id: r for r in results}, recipes)
    if table is None:
        found.text += f"\n\n{NONE}"
        return found
    found.text += f" {sentence(table)}"
    found.add(table)
    return found


def sentence(table: Table) -> str:
    """How often another choice is best, and what it gains."""
    better = [record for record in table.records if record["gain"] > 0]
    same = len(table.records) - len(better)
    said = f"In {same} of {len(table.records)} cases the chosen one is the best of the eight again."
    if better:
        most = max(better, key=lambda record: record["gain"])
        said += (
            f" In the others the best gains {statistics.mean(r['gain'] for r in better):.3f} on "
            f"average and at most {most['gain']:.3f} ({most['learner']} on {most['dataset']}), "
            "without any correction for taking the best of eight."
        )
    return said


def tabulate(results: Mapping[str, Result], recipes: Path) -> Table | None:
    """A row for each data set and method whose trials are finished."""
    trials: dict[tuple[str, str], dict[Way, list[str]]] = defaultdict(lambda: defaultdict(list))
    for run in runs_of(recipes / "tuning-room.toml"):
        data = run.dataset.removeprefix("folder:")
        trials[data, run.learner][how(run.settings)].append(run.id)
    rows, records = [], []
    for (data, learner), by in trials.items():
        if any(i not in results for ids in by.values() for i in ids):
            continue
        means = {way: statistics.mean(results[i].mu_all for i in ids) for way, ids in by.items()}
        taken = chosen(recipes, data, learner)
        best = max(means, key=lambda way: (means[way], way == taken))
        gain = means[best] - means[taken]
        cells = [data, f"`{learner}`", describe(taken), f"{means[taken]:.3f}"]
        if best == taken:
            cells += ["the same", "–", "–"]
        else:
            cells += [describe(best), f"{means[best]:.3f}", format_signed(gain)]
        rows.append([Text(cell) for cell in cells])
        records.append(
            {"dataset": data, "learner": learner, "chosen": describe(taken)}
            | {"best": describe(best), "mu_all": means[taken], "gain": gain}
        )
    head = ["data", "method", "chosen", "μ_all", "best of eight", "μ_all of the best", "gain"]
    note = (
        "Learning rate and clipping, with the mean μ_all of class-instance and iid on validation "
        "videos, 10 samples a class, one seed. Rates: 0.03, 0.1, 0.3 and 1; α of VERSE changes in "
        "proportion."
    )
    return Table("tuning-room", TITLE, head, rows, note, records) if rows else None


def how(settings: Settings) -> Way:
    """The learning rate, and whether gradients are clipped."""
    rate = rate_of(settings)
    assert rate is not None  # every learner of the recipe has one
    return rate, settings["clip"] is not None


def chosen(recipes: Path, data: str, learner: str) -> Way:
    """What the comparison uses."""
    return next(
        how(run.settings)
        for run in runs_of(recipes / f"scale-{data}.toml")
        if run.learner == learner
    )


def describe(way: Way) -> str:
    """For people.

    >>> describe((0.3, False))
    '0.3, not clipped'
    """
    rate, clipped = way
    return f"{rate:g}, {'clipped' if clipped else 'not clipped'}"
