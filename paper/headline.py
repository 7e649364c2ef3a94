"""The README's three sentences and figure about results."""

from __future__ import annotations

from collections import Counter

from paper import verdicts
from paper.source import PaperResults
from paper.verdicts import Verdict
from verse.configuration import DEFAULT_LEARNER
from verse.reports import scores
from verse.reports.scores import Record
from verse.reports.statistics import ENOUGH

PLACE = "docs/results"
NONE = "No finished run yet.\n"


def block(main: PaperResults, first: PaperResults) -> str:
    """Markdown: the figure, who is ahead, and where VERSE stands; of the main comparison as soon as
    it has enough seeds to say something."""
    found = main if _decided(main) else first
    listed = _decided(found)
    if not listed:
        return NONE
    plan = found.comparison
    cells = {(r["dataset"], r["order"]) for r in listed}
    of = f" of {len(plan.cells)}" if plan.missing(cells) else ""
    best = [str(row[0].text) for row in scores.ranks(listed).rows[:3]]
    which = (
        "Older results on short streams"
        if plan.thinned
        else "Real videos, every frame, 23 remembered samples a class"
    )
    newer = (
        ""
        if any(r["learner"] == DEFAULT_LEARNER for r in listed)
        else f"; the default learner, {DEFAULT_LEARNER}, is not among these runs yet"
    )
    judged = verdicts.counts(verdicts.of_paper(found), verdicts.OF_PAPER).removesuffix(".")
    every = [v for v in verdicts.verdicts(found) if v.counted]
    rest = "; ".join(
        f"{said} {_tally([v for v in every if v.learner == name])}"
        for name, said in (
            ("verse", "verse"),
            (DEFAULT_LEARNER, f"the default, {DEFAULT_LEARNER},"),
        )
        if any(v.learner == name for v in every)
    )
    folder = f"{PLACE}/{plan.folder}".rstrip("/")
    return (
        f"![Mean accuracy of the best methods on each data set]({folder}/figures/overview.png)\n\n"
        f"{which}, {len(cells)}{of} combinations of data set and ordering (cells): "
        f"{', '.join(best[:-1])} and {best[-1]} have the best mean ranks. {judged}; against the "
        f"best of all methods {rest}{newer}. "
        f"See [all results]({PLACE}/index.md) for every method and its confidence interval, and "
        f"[the causes]({PLACE}/causes.md) where VERSE is not first.\n"
    )


def _tally(judged: list[Verdict]) -> str:
    """How often first, not told apart and behind.

    >>> _tally([])
    'in 0, 0 and 0'
    """
    by = Counter(v.verdict for v in judged)
    return f"in {by['first']}, {by['tied']} and {by['loss']}"


def _decided(found: PaperResults) -> list[Record]:
    """The cells with enough seeds."""
    benches = {bench.slug for bench in found.compared}
    return [r for r in scores.records(found) if r["bench"] in benches and r["n"] >= ENOUGH]
