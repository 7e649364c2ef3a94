"""Why VERSE, or the default, is not first: where the accuracy is lost, by experiment.

For VERSE: the last test of a stream, from the best reference on all frames to VERSE on classes in
turn, one restriction more in each column (``recipes/scale-reference.toml``, ``scale-*.toml``). For
the default: the same without one of its parts, and discriminant analyses on its features
(``recipes/causes-default.toml``). ``python -m paper.pages`` writes docs/results/causes.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from paper.reading import runs_of
from verse.configuration import DEFAULT_LEARNER
from verse.experiments.result import Result
from verse.reports import statistics
from verse.reports.cells import Results, format_settings
from verse.reports.page import Section
from verse.reports.scores import format_range
from verse.reports.statistics import ENOUGH
from verse.reports.tables import Table, Text, format_signed

SETS = ("asl", "gtsrb_full", "gtsrb", "icub_camera", "eth80")
TITLE = "Why VERSE and the default are not always first"
STEPS = (
    "SGD instead of the best reference",
    "frames once, 23 samples a class kept",
    "classes in turn",
)
VERSE_TEXT = (
    "Where VERSE loses accuracy. From left to right one restriction is added: the best reference "
    "on all frames (chosen on validation videos), the same linear layer trained by SGD on all "
    "frames many times, VERSE on a shuffled stream, VERSE on classes in turn. From SGD to the "
    "shuffled stream two restrictions are added, whose losses were not measured apart: each frame "
    "is seen once, and only 23 samples a class are kept. The last step changes two things, too: "
    "classes come in turn, and memory is a reservoir in place of a class-balanced one, as in the "
    "paper. (Where classes come in turn, a class-balanced memory is no better: on asl it is "
    "[worse](virtual.md#one-thing-changed), on eth80 not significantly different.) The table has "
    "means without intervals; the largest loss between two neighbours is called the cause."
)
LITTLE = 0.02  # a smaller loss has no cause worth naming
DEFAULT_TEXT = (
    f"The default, {DEFAULT_LEARNER}, without its network (weight 0), without the statistics of "
    "the averages (average 0) and without both, beside discriminant analyses on the same grid and "
    "on the embedding of the network. If a part held it back, leaving it out would close the gap; "
    "if the features do, the analysis on the same grid shares it."
)


AS_IT_IS = "as it is"
PARTS = {
    "weight = 0.0": "the network",
    "average = 0.0": "the statistics of the averages",
    "average = 0.0, weight = 0.0": "both",
}
Groups = dict[tuple[str, str], dict[str, Results]]
"""Learner and settings → data set and ordering → runs."""


class Losses(NamedTuple):
    """Accuracy at the end, from no restriction to all, means over seeds."""

    reference: float
    sgd: float
    iid: float
    turns: float
    references: int
    """Seeds of the first two."""
    runs: int
    """Seeds that both orderings of VERSE have."""

    @property
    def steps(self) -> tuple[float, float, float]:
        """What each restriction costs; negative where it helps."""
        return self.reference - self.sgd, self.sgd - self.iid, self.iid - self.turns

    @property
    def cause(self) -> str:
        """The restriction that costs most; empty where none costs much.

        >>> Losses(0.9, 0.88, 0.85, 0.6, 1, 5).cause, Losses(0.9, 0.89, 0.88, 0.87, 1, 5).cause
        ('classes in turn', '')
        """
        most = max(range(3), key=self.steps.__getitem__)
        return STEPS[most] if self.steps[most] >= LITTLE else ""


def sections(results: Iterable[Result], recipes: Path) -> list[Section]:
    """The page: VERSE, then the default."""
    results = list(results)
    first, second = Section(TITLE, VERSE_TEXT), Section("The default", DEFAULT_TEXT)
    found = {name: losses for name in SETS if (losses := measure_losses(name, results, recipes))}
    if not found:
        first.text += "\n\nNo run of `recipes/scale-reference.toml` is finished yet."
    else:
        first.text += f"\n\n{sentence(found)}"
    first.add(losses_table(found) if found else None)
    groups = default_runs(results, recipes)
    if groups:
        second.text += f"\n\n{default_sentence(groups)}"
        second.add(default_table(groups))
    else:
        second.text += "\n\nNo run of `recipes/causes-default.toml` is finished yet."
    return [first, second]


def sentence(found: Mapping[str, Losses]) -> str:
    """Which restriction costs most, on how many sets."""
    sets: dict[str, list[str]] = defaultdict(list)
    for name, losses in found.items():
        sets[losses.cause].append(name)
    small = sets.pop("", [])
    parts = [
        f"“{cause}” costs most on {len(names)} of {len(found)} sets ({', '.join(names)})"
        for cause, names in sorted(sets.items(), key=lambda item: -len(item[1]))
    ]
    if small:
        parts.append(f"no step costs {LITTLE} or more on {', '.join(small)}")
    return f"The result: {'; '.join(parts)}."


def measure_losses(name: str, results: Sequence[Result], recipes: Path) -> Losses | None:
    """The steps on a data set; None where one of the four is missing."""
    bounded = {
        run.id
        for run in runs_of(recipes / "scale-reference.toml")
        if run.dataset == f"folder:{name}"
    }
    references = [r for r in results if r.id in bounded and r.offline]
    columns = []
    whole = runs_of(recipes / f"scale-{name}.toml")
    for order in ("iid", "class-instance"):
        mine = {run.id for run in whole if run.learner == "verse" and run.order == order}
        columns.append([r for r in results if r.id in mine])
    seeds = statistics.common(*columns)
    if not references or not seeds:
        return None
    iid, turns = (mean(r.alpha[-1] for r in runs if r.run.seed in seeds) for runs in columns)
    sgd = mean(r.offline[-1].accuracy for r in references)
    reference = mean(r.offline[-1].reference for r in references)
    trained = {r.run.seed for r in references}
    return Losses(reference, sgd, iid, turns, len(trained), len(seeds))


def losses_table(found: dict[str, Losses]) -> Table:
    """A row for each data set."""
    head = ["data", "reference", "SGD", "VERSE, iid", "VERSE, class-instance"]
    head += ["largest loss", "seeds"]  # of the reference and of VERSE
    rows = [
        [
            Text(name),
            *(Text(f"{value:.3f}") for value in losses[:4]),
            Text(
                f"{losses.cause} ({format_signed(-max(losses.steps))})"
                if losses.cause
                else f"none above {LITTLE}"
            ),
            Text(f"{losses.references}, {losses.runs}"),
        ]
        for name, losses in found.items()
    ]
    records = [{"data": name, **x._asdict(), "cause": x.cause} for name, x in found.items()]
    note = (
        "Accuracy at the last test, means over seeds. Seeds: first those of the reference and of "
        "SGD, which see all frames in any order, then those that both columns of VERSE have."
    )
    return Table("causes", "Where VERSE loses accuracy", head, rows, note, records)


def default_runs(results: Sequence[Result], recipes: Path) -> Groups:
    """The default without its parts, and its rivals on the same features."""
    runs = runs_of(recipes / "causes-default.toml")
    by_id = {r.id: r for r in results}
    groups: Groups = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.id in by_id:
            about = (run.learner, format_settings(run.settings) or AS_IT_IS)
            place = f"{run.dataset.removeprefix('folder:')}, {run.order}"
            groups[about][place].append(by_id[run.id])
    return groups


def default_sentence(groups: Groups) -> str:
    """What leaving out each part changes, and which row is the best."""
    whole = groups.get((DEFAULT_LEARNER, AS_IT_IS), {})
    changes = {}
    for (learner, settings), cells in groups.items():
        for place, runs in cells.items() if cells is not whole else ():
            lead = statistics.difference(runs, whole.get(place, []), "mu")
            if lead is not None and lead.enough:
                changes[learner, settings, place] = lead
    if not changes:
        return f"Fewer than {ENOUGH} common seeds so far."
    sure = statistics.adjust(changes)
    said: dict[str, list[str]] = defaultdict(list)
    for (learner, settings, place), e in sure.items():
        if learner == DEFAULT_LEARNER:
            mark = " (beyond chance)" if e.beyond_chance else ""
            said[settings].append(f"{format_signed(e.mean)} in {place}{mark}")
    parts = [f"Without {PARTS[settings]}: {'; '.join(cells)}." for settings, cells in said.items()]
    held = [
        f"{PARTS[settings]} ({place})"
        for (learner, settings, place), e in sure.items()
        if learner == DEFAULT_LEARNER and e.low > 0
    ]
    cause = f"holds it back: {', '.join(held)}" if held else "no part holds it back"
    best = max(sure, key=lambda key: sure[key].mean)
    e = sure[best]
    text = f"The result, as changes of μ_all. {' '.join(parts)} " if parts else ""
    return (
        f"{text}The largest gain over the default is {e.signed}, of {best[0]} with {best[1]} in "
        f"{best[2]}. Beyond chance, which means with Holm's correction over the {len(sure)} "
        f"differences of the table, {cause}."
    )


def default_table(groups: Groups) -> Table:
    """μ_all, a row for each of them."""
    rows, records = [], []
    places = list(dict.fromkeys(place for cells in groups.values() for place in cells))
    for (learner, settings), cells in groups.items():
        row = [Text(learner), Text(settings)]
        for place in places:
            e = statistics.mu(cells[place]) if cells.get(place) else None
            row.append(Text("–" if e is None else str(e)))
            if e is not None:
                records.append(
                    {"learner": learner, "settings": settings, "place": place} | e.record
                )
        rows.append(row)
    head = ["learner", "settings", *places]
    counts = {len(runs) for cells in groups.values() for runs in cells.values()}
    note = f"μ_all, mean and 95 % interval; {format_range(counts)} seeds."
    return Table("causes-default", "The default and its parts", head, rows, note, records)
