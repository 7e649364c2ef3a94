"""The README's three sentences and figure about results."""

from __future__ import annotations

from paper import verdicts
from paper.source import PaperResults
from verse.configuration import DEFAULT_LEARNER
from verse.reports import scores

FIGURE = "docs/results/figures/overview.png"


def block(found: PaperResults) -> str:
    """Markdown: the figure, who is ahead, and where VERSE stands."""
    listed = [r for r in scores.records(found)
              if r["bench"] in {bench.slug for bench in found.compared}]  # fmt: skip
    if not listed:
        return "No finished run yet.\n"
    cells = {(r["bench"], r["order"]) for r in listed}
    best = [str(row[0].text) for row in scores.ranks(listed).rows[:3]]
    newer = (
        ""
        if any(r["learner"] == DEFAULT_LEARNER for r in listed)
        else f"The default learner, {DEFAULT_LEARNER}, is newer than these runs. "
    )
    judged = verdicts.counts(verdicts.of_paper(found), verdicts.OF_PAPER)
    return (
        f"![Mean accuracy of the best methods on each data set]({FIGURE})\n\n"
        f"On average over {len(cells)} combinations of data set and ordering (cells), {best[0]}, "
        f"{best[1]} and {best[2]} rank highest. {judged} {newer}"
        "See [all results](docs/results/index.md) for every method and its confidence interval.\n"
    )
