"""VERSE and its variants against the best rival of every cell: first, tied, or a loss."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from verse.reports import paper, statistics
from verse.reports.cells import Bench, Cells, Sorted, competes, is_verse, orders_of
from verse.reports.statistics import ENOUGH, Estimate
from verse.reports.tables import Table, Text, signed

BEST = "the best rival"
OF_PAPER = "the best rival that the paper compares"
HEAD = ["learner", "data set", "ordering", "verdict", "best rival", "lead", "95 % interval",
        "seeds", "t-test p (Holm)", "backbone"]  # fmt: skip


def verdicts(
    found: Sorted,
    among: Collection[str] | None = None,
    *,
    judged: Callable[[str], bool] = is_verse,
) -> list[dict[str, Any]]:
    """One record for each cell of VERSE and of each variant, with Holm's correction over cells.

    ``judged`` says whom it is about. Rivals are all streaming methods but VERSE's kind, or those
    of them that ``among`` names.
    """
    listed: list[dict[str, Any]] = []
    for bench in found.benches:
        cells = found.main(bench)
        for order in orders_of(cells):
            for name in (n for n in cells if judged(n) and order in cells[n]):
                record = _verdict(bench, order, name, cells, among)
                if record is not None:
                    listed.append(record | {"counted": bench in found.compared})
    for family in {(r["learner"], r["counted"]) for r in listed}:
        tested = [r for r in listed
                  if (r["learner"], r["counted"]) == family and r["p"] is not None]  # fmt: skip
        for record, p in zip(tested, statistics.holm([r["p"] for r in tested]), strict=True):
            record["p_holm"] = p
    return listed


def of_paper(found: Sorted) -> list[dict[str, Any]]:
    """VERSE itself against the methods of the paper's result table alone."""
    return verdicts(found, paper.RIVALS, judged=lambda name: name == "verse")


def leads(
    cells: Cells, order: str, name: str, among: Collection[str] | None
) -> dict[str, Estimate | None]:
    """Rival → paired lead of ``name`` over it."""
    rivals = [n for n, by in cells.items() if order in by and competes(n) and not is_verse(n)
              and (among is None or n in among)]  # fmt: skip
    ours = cells[name][order]
    measure = statistics.metric(ours, *(cells[rival][order] for rival in rivals))
    return {r: statistics.difference(ours, cells[r][order], measure) for r in rivals}


def _verdict(
    bench: Bench, order: str, name: str, cells: Cells, among: Collection[str] | None
) -> dict[str, Any] | None:
    """Who is the best rival: the one over which the lead is smallest, on the seeds both have.

    Rivals with too few common seeds are named, not compared, unless there are no others. The choice
    is made by the same runs as the test: it makes being first harder, never easier.
    """
    found = leads(cells, order, name, among)
    known = {rival: lead for rival, lead in found.items() if lead is not None}
    sure = {rival: lead for rival, lead in known.items() if lead.enough}
    if not found:
        return None
    compared = sure or known
    rival = min(compared, key=lambda r: compared[r].mean) if compared else next(iter(found))
    lead = compared.get(rival)
    verdict = "undecided"
    if lead is not None and lead.enough:
        open_ = [r for r, other in sure.items() if not other.low > 0]
        verdict = "loss" if lead.high < 0 else "tied" if open_ else "first"
        if verdict == "first" and len(sure) < len(found):
            verdict = "undecided"
    ours, theirs = cells[name][order], cells[rival][order]
    return {
        "dataset": bench.dataset,
        "backbone": bench.backbone,
        "order": order,
        "learner": name,
        "rival": rival,
        "lead_mean": None if lead is None else lead.mean,
        "lead_low": None if lead is None else lead.low,
        "lead_high": None if lead is None else lead.high,
        "n": 0 if lead is None else lead.n,
        "p": statistics.p_value(ours, theirs),
        "p_holm": None,
        "verdict": verdict,
        "measure": statistics.metric(*(by[order] for by in cells.values() if order in by)),
        "rivals": len(sure),
        "not_compared": sorted(set(found) - set(sure)),
        "bench": bench.slug,
    }


def summary(listed: list[dict[str, Any]], of_paper: list[dict[str, Any]]) -> str:
    """Against all rivals, and against those of the paper."""
    counted = ((listed, BEST), (of_paper, OF_PAPER))
    return " ".join(counts(mine, rival) for mine, rival in counted if mine)


def counts(listed: list[dict[str, Any]], rival: str = BEST) -> str:
    """How often each is first, tied or beaten in the comparison proper.

    >>> tied, loss = ({"learner": "verse", "verdict": v, "counted": True} for v in ("tied", "loss"))
    >>> counts([tied, loss])
    'Against the best rival verse is first in 0, tied in 1 and beaten in 1 of 2 cells.'
    """
    listed = [r for r in listed if r["counted"]]
    parts = []
    for name in sorted({r["learner"] for r in listed}, key=lambda n: (n != "verse", n)):
        mine = [r["verdict"] for r in listed if r["learner"] == name]
        first, tied, loss = (mine.count(word) for word in ("first", "tied", "loss"))
        rest = f", undecided in {mine.count('undecided')}" if "undecided" in mine else ""
        parts.append(f"{name} is first in {first}, tied in {tied} and beaten in {loss}{rest} "
                     f"of {len(mine)} cells")  # fmt: skip
    return f"Against {rival} {'; '.join(parts)}."


def table(listed: list[dict[str, Any]]) -> Table:
    """The verdicts for people."""
    note = (
        "Lead in Ω_all (μ_all where somebody has no Offline) over the best streaming method that "
        "is no variant of VERSE: the one over which the lead is smallest on the seeds both have. "
        "First: the paired interval of the lead excludes zero, for this rival and all others; "
        "loss: it excludes zero on the other side; tied: neither; undecided: fewer than "
        f"{ENOUGH} seeds in common with some rival. The interval decides. p, beside it, is of a "
        "paired t-test over seeds, corrected by Holm over all cells of the learner (other "
        "backbones and rendered data by themselves), and takes the test videos as given; with few "
        "seeds a loss may have a p above 0.05."
    )
    return Table("verdicts", f"VERSE against {BEST}", HEAD, _rows(listed), note, listed)


def paper_table(listed: list[dict[str, Any]]) -> Table:
    """The same against fewer rivals."""
    note = "As above, but rivals are only the methods of the paper's result table that compete."
    title = f"VERSE against {OF_PAPER}"
    return Table("verdicts-paper", title, HEAD, _rows(listed), note, listed)


def _rows(listed: list[dict[str, Any]]) -> list[list[Text]]:
    rows = []
    for r in sorted(listed, key=lambda r: (r["learner"] != "verse", r["learner"])):
        lead, p = r["lead_mean"], r["p_holm"]
        ends = [] if lead is None else [signed(r["lead_low"]), signed(r["lead_high"])]
        cells = [r["rival"],
                 "–" if lead is None else signed(lead), " … ".join(ends) or "–", str(r["n"]),
                 "–" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"]  # fmt: skip
        rows.append([Text(r["learner"]), Text(r["dataset"]), Text(r["order"]),
                     Text(r["verdict"], r["verdict"] == "first"), *map(Text, cells),
                     Text(r["backbone"])])  # fmt: skip
    return rows
