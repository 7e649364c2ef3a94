"""When training the network pays off: accuracy against the length of the stream.

The runs are those of ``recipes/length-*.toml``; for the whole stream, of ``recipes/scale-*.toml``.
``python -m paper.pages`` writes docs/results/length.md; ``paper/depth.py`` makes its second part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from verse.configuration import DEFAULT_LEARNER
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.learners import defaults
from verse.reports import statistics, style
from verse.reports.cells import Results
from verse.reports.figures import ReportFigure
from verse.reports.page import Section
from verse.reports.statistics import ENOUGH, Estimate
from verse.reports.tables import Table, Text, format_signed

SETS = {"eth80": "like ImageNet", "asl": "unlike ImageNet", "gtsrb_full": "unlike ImageNet"}
ORDERS = ("class-instance", "iid")
CLOSED = ("ncm", "slda", "slda-grid", "ridge")
GROUPS = {
    "trained network": ("verse", "tinyer", "er-ace", "derpp", "cls-er"),
    f"default, {DEFAULT_LEARNER}": (DEFAULT_LEARNER,),
}
DRAWN = (*CLOSED, "verse", "tinyer", "derpp", DEFAULT_LEARNER)  # as many as have colours
TITLE = "When training the network pays off"
QUESTION = (
    "For which length of the stream, and for which distance from the images of pretraining, is a "
    "trained network better than a closed form, which keeps statistics of fixed features (ncm, "
    "slda, slda-grid, ridge)?"
)
NONE = (
    "No run of `recipes/length-*.toml` on test videos is finished yet: `python -m paper.grid` "
    "makes them."
)
RATES = (
    "Learning rates were chosen on streams of at most 1,600 frames ([tuning](tuning.md)) and serve "
    "all lengths. A smaller rate might do better on long streams; this was not tried."
)
ByLength = dict[int, dict[str, Results]]
"""Frames of the stream → learner → runs."""


@dataclass(frozen=True)
class Lead:
    """Of the best of a group over closed forms, in accuracy at the end of the stream."""

    learner: str
    rival: str
    estimate: Estimate
    word: str
    """"ahead" of every closed form, "behind" one of them, or "level"."""

    @property
    def text(self) -> str:
        """For people: the word, against whom, and by how much."""
        words = {"ahead": "ahead of", "behind": "behind", "level": "not told apart from"}
        return f"{words[self.word]} {self.rival} ({format_signed(self.estimate.mean)})"


def identities(recipes: Path) -> set[str]:
    """The runs that belong to the figure: the shortened ones, and the whole stream beside them."""
    names = set[str]()
    for data in SETS:
        short = read_recipe(recipes / f"length-{data}.toml").runs
        learners = {run.learner for run in short}
        whole = [
            run
            for run in read_recipe(recipes / f"scale-{data}.toml").runs
            if run.learner in learners and run.order in ORDERS
        ]
        names |= {run.id for run in (*short, *whole)}
        # the runs with a reference are some of them, though they leave defaults unnamed; tables
        # show each but once
        meant = {_meaning(run) for run in whole}
        references = read_recipe(recipes / "scale-reference.toml").runs
        names |= {run.id for run in references if _meaning(run) in meant}
    return names


def _meaning(run: Run) -> tuple[object, ...]:
    """What a run is, whether or not it names settings that are the defaults."""
    settings = defaults(run.learner) | dict(run.settings)
    known = sorted((name, repr(value)) for name, value in settings.items())
    return run.dataset, run.learner, run.order, run.seed, run.capacity, *known


def collect(results: Iterable[Result], wanted: set[str]) -> dict[tuple[str, str], ByLength]:
    """(data set, ordering) → its runs by length, where some are shortened."""
    found: dict[tuple[str, str], ByLength] = {}
    for r in sorted(results, key=lambda r: (r.frames, r.run.learner, r.run.seed)):
        if r.id in wanted:
            place = (r.run.dataset.removeprefix("folder:"), r.run.order)
            by = found.setdefault(place, {}).setdefault(r.frames, {})
            by.setdefault(r.run.learner, []).append(r)
    places = ((data, order) for data in SETS for order in ORDERS)
    return {place: found[place] for place in places if len(found.get(place, ())) > 1}


def judge(ours: Mapping[str, Results], closed: Mapping[str, Results]) -> Lead | None:
    """The best of a group against the closed forms; None without enough common seeds.

    Ahead takes a lead over every closed form, with Holm's correction over the group, because one of
    it is enough; behind takes a closed form that leads the best of the group, with Holm's
    correction over closed forms.
    """
    least: dict[str, tuple[str, Estimate]] = {}
    beaten: dict[str, bool] = {}
    for name, runs in ours.items():
        leads = {n: statistics.difference(runs, theirs, "final") for n, theirs in closed.items()}
        sure = {n: lead for n, lead in leads.items() if lead is not None and lead.enough}
        if sure and len(sure) == len(leads):
            rival = min(sure, key=lambda n: sure[n].low)
            least[name] = (rival, sure[rival])
            beaten[name] = any(e.high < 0 for e in statistics.adjust(sure).values())
    if not least:
        return None
    adjusted = statistics.adjust({name: lead for name, (_, lead) in least.items()})
    learner = max(adjusted, key=lambda name: adjusted[name].mean)
    rival, _ = least[learner]
    ahead = any(e.low > 0 for e in adjusted.values())
    word = "ahead" if ahead else "behind" if beaten[learner] else "level"
    return Lead(learner, rival, adjusted[learner], word)


def leads(by: ByLength, names: Iterable[str]) -> dict[int, Lead]:
    """Length → the lead of the best of these, where it can be judged."""
    found = {}
    for frames, learners in by.items():
        closed = {n: learners[n] for n in CLOSED if n in learners}
        lead = judge({n: learners[n] for n in names if n in learners}, closed) if closed else None
        if lead is not None:
            found[frames] = lead
    return found


def sentence(data: str, order: str, judged: Mapping[int, Lead]) -> str:
    """At which length a trained network passes closed forms, or that it does not up to here."""
    where = f"{data} ({SETS[data]}), {order}"
    if not judged:
        return f"{where}: fewer than {ENOUGH} common seeds so far."
    ahead = [frames for frames, lead in judged.items() if lead.word == "ahead"]
    last = max(judged)
    lead = judged[last]
    rest = f"at {last:,} frames {lead.learner} is {lead.text}"
    if (first := min(judged)) < last:
        rest += f", at {first:,} frames the difference is "
        rest += format_signed(judged[first].estimate.mean)
    if not ahead:
        return f"{where}: not ahead at any length up to here; {rest}."
    lasting = [n for n in ahead if all(m in ahead for m in judged if m > n)]
    when = f"from {min(lasting):,} frames on" if lasting else f"at {', '.join(map(str, ahead))}"
    return f"{where}: ahead {when}; {rest}."


def section(results: Iterable[Result], recipes: Path, folder: Path) -> Section:
    """The page: text, figure, table of leads, and how much of the network learns."""
    results = list(results)
    found = collect(results, identities(recipes))
    first = Section(TITLE, QUESTION if found else f"{QUESTION}\n\n{NONE}")
    if found:
        network = GROUPS["trained network"]
        lines = [f"- {sentence(*place, leads(by, network))}" for place, by in found.items()]
        first.text += (
            f" {RATES} A trained network against closed forms, accuracy at the end of the "
            "stream:\n\n"
        ) + "\n".join(lines)
        first.add(draw(found, folder), table(found))
    return first


def draw(found: Mapping[tuple[str, str], ByLength], folder: Path) -> ReportFigure:
    """A panel for each data set and ordering, frames on a logarithmic axis."""
    looks = style.looks(DRAWN)
    rows = len({order for _, order in found})
    figure, axes = style.panels(len(found), 2.8, rows=rows)
    places = sorted(found, key=lambda place: ORDERS.index(place[1]))
    for axis, place in zip(axes, places, strict=True):
        for number, (learner, look) in enumerate(looks.items()):
            aside = 1.045 ** (number - len(looks) / 2)  # whiskers must not cover each other
            points = {
                frames * aside: statistics.final(by[learner])
                for frames, by in found[place].items()
                if learner in by
            }
            if points:
                style.draw_estimates(
                    axis,
                    points,
                    color=look.colour,
                    marker=look.marker,
                    ms=4,
                    lw=1.3,
                    elinewidth=0.7,
                    label=learner,
                )
        axis.set_xscale("log")
        axis.set_title(", ".join(place))
        axis.set_xlabel("frames of the stream")
        axis.set_ylabel("accuracy at its end")
    style.add_common_legend(figure, axes)
    note = (
        "Accuracy on all test frames at the end of streams of several lengths, mean and 95 % "
        "interval over seeds and test videos, of three of the five trained networks (the table "
        "has all). The points of a length stand a little beside each other so that intervals can "
        "be read."
    )
    return ReportFigure(
        style.save(figure, folder, "length"), "Accuracy against the length of the stream", note
    )


def table(found: Mapping[tuple[str, str], ByLength]) -> Table:
    """Leads over closed forms: a row for each data set, ordering and group, a column a length."""
    lengths = sorted({_column(frames) for by in found.values() for frames in by})
    rows, records = [], []
    for (data, order), by in found.items():
        for group, names in GROUPS.items():
            judged = leads(by, names)
            cells = {_column(frames): lead for frames, lead in judged.items()}
            row = [Text(f"{data} {order}, {group}")]
            for length in lengths:
                lead = cells.get(length)
                row.append(Text("–") if lead is None else _cell(lead, named=len(names) > 1))
            rows.append(row)
            for frames, lead in judged.items():
                records.append(
                    {"dataset": data, "order": order, "group": group, "frames": frames}
                    | {"learner": lead.learner, "rival": lead.rival, "outcome": lead.word}
                    | lead.estimate.record
                )
    note = (
        "Lead in accuracy at the end over the closed form that is hardest to beat, on common "
        "seeds: who, and by how much. Bold: ahead of every closed form, with Holm's correction "
        "over the methods of a group. ▼: a closed form is ahead of it, with Holm's correction over "
        f"closed forms. Dash: fewer than {ENOUGH} common seeds. Trained networks: "
        f"{', '.join(GROUPS['trained network'])}; closed forms: {', '.join(CLOSED)}."
    )
    head = ["data, ordering, method", *(f"{n:,}" if n else "all" for n in lengths)]
    # the whole stream comes last
    order_ = [0, *sorted(range(1, len(head)), key=lambda i: head[i] == "all")]
    return Table(
        "length",
        "Lead over closed forms by the length of the stream",
        [head[i] for i in order_],
        [[row[i] for i in order_] for row in rows],
        note,
        records,
    )


def _column(frames: int) -> int:
    """Shortened streams have round lengths; 0 stands for the whole stream, whatever its length."""
    return frames if frames in (100, 300, 1000, 3000, 10000) else 0


def _cell(lead: Lead, *, named: bool) -> Text:
    mark = " ▼" if lead.word == "behind" else ""
    name = f"{lead.learner} " if named else ""
    text = f"{name}{format_signed(lead.estimate.mean)}{mark}"
    return Text(text, lead.word == "ahead")
