"""Why VERSE, or the default, is not first: where the accuracy is lost, by experiment.

For VERSE: the last test of a stream, from the best reference on all frames to VERSE on classes in
turn, one restriction more in each column (``recipes/scale-reference.toml``, ``scale-*.toml``). For
the default: the same without one of its parts, and discriminant analyses on its features
(``recipes/causes-default.toml``). ``python -m paper.pages`` writes docs/results/causes.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from paper.reading import runs_of
from verse.configuration import DEFAULT_LEARNER
from verse.experiments.result import Result
from verse.reports import statistics
from verse.reports.cells import Results, format_settings
from verse.reports.page import Section
from verse.reports.tables import Table, Text, format_signed

SETS = ("asl", "gtsrb_full", "gtsrb", "icub_camera", "eth80")
ORDERS = ("class-instance", "iid")
TITLE = "Why VERSE and the default are not always first"
STEPS = (
    "SGD instead of the best reference",
    "frames once, 23 samples a class kept",
    "classes in turn",
)
VERSE_TEXT = (
    "Where VERSE loses accuracy. From left to right one restriction is added: the best reference "
    "on all frames (chosen on validation videos), the same linear layer trained by SGD on all "
    "frames many times, VERSE on a shuffled stream, VERSE on classes in turn. The largest loss "
    "between two neighbours is the cause."
)
DEFAULT_TEXT = (
    f"The default, {DEFAULT_LEARNER}, without its network (weight 0), without the statistics of "
    "the averages (average 0) and without both, beside discriminant analyses on the same grid and "
    "on the embedding of the network. If a part held it back, leaving it out would close the gap; "
    "if the features do, the analysis on the same grid shares it."
)


class Losses(NamedTuple):
    """Accuracy at the end, from no restriction to all."""

    reference: float
    sgd: float
    iid: float
    turns: float

    @property
    def steps(self) -> tuple[float, float, float]:
        """What each restriction costs; negative where it helps."""
        return self.reference - self.sgd, self.sgd - self.iid, self.iid - self.turns

    @property
    def cause(self) -> str:
        """The restriction that costs most.

        >>> Losses(0.9, 0.88, 0.85, 0.6).cause
        'classes in turn'
        """
        return STEPS[max(range(3), key=self.steps.__getitem__)]


def sections(results: Iterable[Result], recipes: Path) -> list[Section]:
    """The page: VERSE, then the default."""
    results = list(results)
    first, second = Section(TITLE, VERSE_TEXT), Section("The default", DEFAULT_TEXT)
    found = {name: losses for name in SETS if (losses := measure_losses(name, results, recipes))}
    if not found:
        first.text += "\n\nNo run of `recipes/scale-reference.toml` is finished yet."
    first.add(losses_table(found) if found else None)
    parts = default_table(results, recipes)
    if parts is None:
        second.text += "\n\nNo run of `recipes/causes-default.toml` is finished yet."
    second.add(parts)
    return [first, second]


def measure_losses(name: str, results: Sequence[Result], recipes: Path) -> Losses | None:
    """The steps on a data set, means over seeds; None where one of the four is missing."""
    bounded = {
        run.id
        for run in runs_of(recipes / "scale-reference.toml")
        if run.dataset == f"folder:{name}"
    }
    last = [r.offline[-1] for r in results if r.id in bounded and r.offline]
    whole = runs_of(recipes / f"scale-{name}.toml")
    ends = []
    for order in ("iid", "class-instance"):
        mine = {run.id for run in whole if run.learner == "verse" and run.order == order}
        ends.append([r.alpha[-1] for r in results if r.id in mine])
    if not last or not all(ends):
        return None
    sgd = mean(bound.accuracy for bound in last)
    return Losses(mean(bound.reference for bound in last), sgd, mean(ends[0]), mean(ends[1]))


def losses_table(found: dict[str, Losses]) -> Table:
    """A row for each data set."""
    head = ["data", "reference", "SGD", "VERSE, iid", "VERSE, class-instance", "largest loss"]
    rows = [
        [
            Text(name),
            *(Text(f"{value:.3f}") for value in losses),
            Text(f"{losses.cause} ({format_signed(-max(losses.steps))})"),
        ]
        for name, losses in found.items()
    ]
    records = [{"data": name, **x._asdict(), "cause": x.cause} for name, x in found.items()]
    note = "Accuracy at the last test, means over seeds."
    return Table("causes", "Where VERSE loses accuracy", head, rows, note, records)


def default_table(results: Sequence[Result], recipes: Path) -> Table | None:
    """μ_all of the default without its parts, and of its rivals on the same features."""
    runs = runs_of(recipes / "causes-default.toml")
    by_id = {r.id: r for r in results}
    groups: dict[tuple[str, str], dict[str, Results]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.id in by_id:
            about = (run.learner, format_settings(run.settings) or "as it is")
            groups[about][run.order].append(by_id[run.id])
    if not groups:
        return None
    rows, records = [], []
    for (learner, settings), cells in groups.items():
        row = [Text(learner), Text(settings)]
        for order in ORDERS:
            e = statistics.mu(cells[order]) if cells.get(order) else None
            row.append(Text("–" if e is None else str(e)))
            if e is not None:
                records.append(
                    {"learner": learner, "settings": settings, "order": order} | e.record
                )
        rows.append(row)
    head = ["learner", "settings", *(f"gtsrb_full, {order}" for order in ORDERS)]
    note = "μ_all, mean and 95 % interval."
    return Table("causes-default", "The default and its parts", head, rows, note, records)
