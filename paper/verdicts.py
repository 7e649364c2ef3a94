"""VERSE and its variants against their rivals in every cell: first, tied, or a loss.

First: the paired interval of the lead excludes zero for every rival, which needs no correction for
their number. A loss takes a rival whose lead survives Holm's correction over all rivals of the
cell: with thirty of them somebody is ahead by chance. The interval and p of a row answer the same
question: both are corrected, or neither is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass

from paper import published
from paper.source import PaperResults
from verse import learners
from verse.reports import statistics
from verse.reports.cells import Bench, Cells, competes, is_verse, orders_of
from verse.reports.scores import cell_names
from verse.reports.statistics import ENOUGH, Estimate
from verse.reports.tables import Table, Text, format_signed

BEST = "the best rival"
OF_PAPER = "the best rival that the paper compares"
CISLL = "the best of them that keep to class-incremental streaming learning"
CISLL_MEANS = (
    "methods that need no task labels, see each frame once and do not fine-tune before answering"
)
WORDS = {
    "first": "first",
    "tied": "not told apart",
    "loss": "behind",
    "undecided": "too few seeds",
}
"""A verdict → how people read it."""
HEAD = ["learner", "cell", "verdict", "rival", "lead in μ_all", "p", "seeds"]


@dataclass(frozen=True)
class Verdict:
    """One cell: who decides it, by how much, and how sure that is."""

    dataset: str
    backbone: str
    order: str
    bench: str
    length: int
    """Frames of a shortened stream, else 0."""
    learner: str
    rival: str
    verdict: str
    lead_mean: float | None
    lead_low: float | None
    lead_high: float | None
    n: int
    p: float | None
    """Of the lead over this rival; with Holm's correction over the rivals of the cell, as has the
    interval, but where it is first."""
    freedom: float | None
    """The degrees of freedom of both."""
    rivals: int
    not_compared: tuple[str, ...]
    counted: bool
    """The cell is part of the comparison proper."""


def verdicts(
    found: PaperResults,
    among: Collection[str] | None = None,
    *,
    judged: Callable[[str], bool] = is_verse,
) -> list[Verdict]:
    """One for each cell of VERSE and of each variant.

    ``judged`` says whom it is about. Rivals are all streaming methods but VERSE's kind, or those
    of them that ``among`` names.
    """
    listed = []
    for bench in found.benches:
        cells = found.main(bench)
        for order in orders_of(cells):
            for name in (n for n in cells if judged(n) and order in cells[n]):
                leads = _leads(cells, order, name, among)
                if leads:
                    listed.append(_verdict(found, bench, order, name, leads))
    return listed


def of_paper(found: PaperResults, *, conforming: bool = False) -> list[Verdict]:
    """VERSE itself against the methods of the paper's result table alone; ``conforming``: against
    those of them that keep to the paper's own constraints."""
    rivals = [
        n for n in published.RIVALS if not conforming or not learners.get(n).traits.violates_cisll
    ]
    return verdicts(found, rivals, judged=lambda name: name == "verse")


def _leads(
    cells: Cells, order: str, name: str, among: Collection[str] | None
) -> dict[str, Estimate | None]:
    """Rival → paired lead of ``name`` over it in μ_all."""
    rivals = [
        n
        for n, by in cells.items()
        if order in by and competes(n) and not is_verse(n) and (among is None or n in among)
    ]
    ours = cells[name][order]
    return {r: statistics.difference(ours, cells[r][order], "mu") for r in rivals}


def _verdict(
    found: PaperResults, bench: Bench, order: str, name: str, leads: dict[str, Estimate | None]
) -> Verdict:
    """Rivals with too few common seeds are named, not compared, unless there are no others."""
    known = {rival: lead for rival, lead in leads.items() if lead is not None}
    sure = {rival: lead for rival, lead in known.items() if lead.enough}
    adjusted = statistics.adjust(sure)
    losses = {r: lead for r, lead in adjusted.items() if lead.high < 0}
    ahead = [r for r, lead in sure.items() if lead.low > 0]
    verdict = "undecided"
    if losses:
        verdict = "loss"
    elif sure and len(ahead) == len(leads):
        verdict = "first"
    elif sure and len(ahead) < len(sure):
        verdict = "tied"
    compared = losses or (sure if verdict == "first" else adjusted) or known
    # first is who beats everybody: it is decided by the lead that is least sure
    places = {r: (-e.p if verdict == "first" else 0.0, e.mean) for r, e in compared.items()}
    rival = min(places, key=places.__getitem__) if places else next(iter(leads))
    lead = compared.get(rival)
    none = (None, None, None, 0, None, None)
    mean, low, high, n, p, freedom = none if lead is None else lead
    return Verdict(
        dataset=bench.dataset,
        backbone=bench.backbone,
        order=order,
        bench=bench.slug,
        length=found.length(bench),
        learner=name,
        rival=rival,
        verdict=verdict,
        lead_mean=mean,
        lead_low=low,
        lead_high=high,
        n=n,
        p=p if sure else None,
        freedom=freedom,
        rivals=len(sure),
        not_compared=tuple(sorted(set(leads) - set(sure))),
        counted=bench in found.compared,
    )


def summary(listed: Sequence[tuple[Sequence[Verdict], str]]) -> str:
    """How often each is first, not told apart or behind, against each group of rivals."""
    return " ".join(counts(mine, rival) for mine, rival in listed if mine)


def counts(listed: Sequence[Verdict], rival: str = BEST) -> str:
    """How often each is first, not told apart or behind in the comparison proper."""
    parts = []
    for name, by in _counted(listed).items():
        rest = f", with too few seeds in {by['undecided']}" if by["undecided"] else ""
        parts.append(
            f"{name} is first in {by['first']}, not told apart in {by['tied']} and behind in "
            f"{by['loss']}{rest} of {by.total()} cells"
        )
    return f"Against {rival} {'; '.join(parts)}."


def _counted(listed: Sequence[Verdict]) -> dict[str, Counter[str]]:
    """VERSE and its variants → how often each verdict, in the comparison proper."""
    mine = [v for v in listed if v.counted]
    names = sorted({v.learner for v in mine}, key=lambda n: (n != "verse", n))
    return {name: Counter(v.verdict for v in mine if v.learner == name) for name in names}


def standing(listed: Sequence[Verdict], rival: str = BEST) -> Table | None:
    """The same as a table: a row for VERSE and each variant."""
    found = _counted(listed)
    words = [
        word for word in WORDS if word != "undecided" or any(by[word] for by in found.values())
    ]
    rows = [
        [Text(name), *(Text(str(by[word])) for word in words), Text(str(by.total()))]
        for name, by in found.items()
    ]
    head = ["learner", *(WORDS[word] for word in words), "cells"]
    records = [{"learner": name, **{w: by[w] for w in words}} for name, by in found.items()]
    title = f"VERSE and its variants against {rival}"
    note = (
        "In how many combinations of data set and ordering (cells) it is first, not told apart "
        "from the best rival, or behind it."
    )
    return Table("standing", title, head, rows, note, records) if rows else None


def table(name: str, listed: Sequence[Verdict], against: str) -> Table:
    """The verdicts for people."""
    note = (
        "Lead in μ_all on the seeds both have, with its 95 % interval and the p that agrees with "
        "it. Behind: a rival is ahead after Holm's correction, of p and interval, over all rivals "
        "of the cell; the rival named is the one furthest ahead. First: the interval excludes zero "
        "for every rival, which needs no correction; the rival named is the least sure one. Not "
        "told apart: neither, with the same correction as behind. Too few seeds: fewer than "
        f"{ENOUGH} in common with some rival."
    )
    rows = []
    cells = cell_names([asdict(v) for v in listed])
    for v in sorted(listed, key=lambda v: (v.learner != "verse", v.learner)):
        lead = "–"
        if v.lead_mean is not None and v.lead_low is not None and v.lead_high is not None:
            low, high = format_signed(v.lead_low), format_signed(v.lead_high)
            lead = f"{format_signed(v.lead_mean)} ({low} … {high})"
        p = "–" if v.p is None else f"{v.p:.3f}" if v.p >= 0.001 else "< 0.001"
        rows.append(
            [
                Text(v.learner),
                Text(cells[v.bench, v.order]),
                Text(WORDS[v.verdict], v.verdict == "first"),
                Text(v.rival),
                Text(lead),
                Text(p),
                Text(str(v.n)),
            ]
        )
    return Table(name, f"VERSE against {against}", HEAD, rows, note, [asdict(v) for v in listed])
