"""The README's three sentences and figure about results."""

from __future__ import annotations

from paper import verdicts
from paper.source import PaperResults
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
    # of all methods: VERSE, and what a user gets
    mine = [v for v in verdicts.verdicts(found) if v.learner in ("verse", DEFAULT_LEARNER)]
    rest = verdicts.counts(mine, "the best of all methods").removesuffix(".")
    folder = f"{PLACE}/{plan.folder}".rstrip("/")
    return (
        f"![Mean accuracy of the best methods on each data set]({folder}/figures/overview.png)\n\n"
        f"{which}: {', '.join(best[:-1])} and {best[-1]} have the best mean ranks over "
        f"{len({r['dataset'] for r in listed})} data sets, of {len(cells)}{of} combinations of "
        f"data set and ordering (cells). {judged}; {rest[0].lower()}{rest[1:]}{newer}. "
        f"See [all results]({PLACE}/index.md) for every method and its confidence interval, and "
        f"[the causes]({PLACE}/causes.md) where VERSE is not first.\n"
    )


def _decided(found: PaperResults) -> list[Record]:
    """The cells with enough seeds."""
    benches = {bench.slug for bench in found.compared}
    return [r for r in scores.records(found) if r["bench"] in benches and r["n"] >= ENOUGH]
