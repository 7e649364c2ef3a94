"""Comparisons that speak for or against a claim: paired differences, judged by their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paper.ablations import Ablation
from paper.knobs import Value
from paper.verdicts import Verdict
from verse.reports import statistics
from verse.reports.statistics import ENOUGH, Estimate

HOLDS, FAILS, NONE, OPEN, MISSING = "holds", "fails", "no effect", "not told apart", "missing"
NEGLIGIBLE = 0.01
"""An effect whose whole interval is smaller than this is none."""
CHANCE = 1 - statistics.LEVEL


@dataclass(frozen=True)
class Evidence:
    """One comparison: positive where the claim is right."""

    where: str
    what: str
    measure: str
    estimate: Estimate | None
    outcome: str
    p: float | None = None
    """The p-value, corrected for the claim's other comparisons."""
    margin: float = 0.0
    """An effect whose whole interval is smaller than this is none."""
    said: str = ""
    """The comparison for people, where the difference alone does not tell them."""

    @property
    def text(self) -> str:
        """In short: the difference and its interval."""
        e = self.estimate
        if e is None:
            return f"{self.where}: {self.what}"
        if self.said:
            return f"{self.where}: {self.said}"
        return f"{self.where}: {self.what} {e.signed}"


def judged(
    where: str, what: str, measure: str, e: Estimate | None, *, margin: float = 0.0, said: str = ""
) -> Evidence:
    """Above zero it holds, below it fails; otherwise an interval within ± ``margin`` shows that
    there is no effect. Without enough seeds it is missing."""
    if e is None or not e.enough:
        seeds = 0 if e is None else e.n
        return Evidence(where, f"{what}: {seeds} of {ENOUGH} common seeds", measure, None, MISSING)
    outcome = HOLDS if e.low > 0 else FAILS if e.high < 0 else _uncertain(e, margin)
    return Evidence(where, what, measure, e, outcome, e.p, margin, said)


def _uncertain(e: Estimate, margin: float) -> str:
    return NONE if -margin < e.low and e.high < margin else OPEN


def corrected(evidence: Sequence[Evidence]) -> list[Evidence]:
    """With Holm's correction over the comparisons, of p and intervals: what may be chance among so
    many does not count."""
    tested = {
        i: e.estimate._replace(p=e.p)
        for i, e in enumerate(evidence)
        if e.estimate and e.p is not None
    }
    listed = list(evidence)
    for i, estimate in statistics.adjust(tested).items():
        e = replace(listed[i], estimate=estimate, p=estimate.p)
        if estimate.p >= CHANCE:
            e = replace(e, outcome=_uncertain(estimate, e.margin))
        listed[i] = e
    return listed


def of_verdict(v: Verdict) -> Evidence:
    """A cell's verdict: VERSE minus the rival that decides it.

    That it is first takes a lead over every rival, so no correction for their number; that it is
    not takes one, with it.
    """
    where, what = f"{v.dataset} {v.order}", f"VERSE − {v.rival}"
    if v.verdict == "undecided" or v.lead_mean is None or v.lead_low is None or v.lead_high is None:
        what += f": fewer than {ENOUGH} seeds of {', '.join(v.not_compared)}"
        return Evidence(where, what, "mu", None, MISSING)
    outcome = {"first": HOLDS, "loss": FAILS}.get(v.verdict, OPEN)
    p = 1.0 if v.p is None else v.p
    e = Estimate(v.lead_mean, v.lead_low, v.lead_high, v.n, p, v.freedom or 0.0)
    return Evidence(where, what, "mu", e, outcome, p)


def pair(a: Ablation, order: str, ours: Value, theirs: Value) -> Evidence:
    """One value of a knob minus another."""
    by, what = a.runs[order], f"{ours} − {theirs}"
    if ours not in by or theirs not in by:
        absent = [str(v) for v in (ours, theirs) if v not in by]
        return Evidence(order, f"{what}: no {', '.join(absent)}", a.measure, None, MISSING)
    lead = statistics.difference(by[ours], by[theirs], a.measure)
    return judged(order, what, a.measure, lead, margin=NEGLIGIBLE)


def best(a: Ablation, order: str, ours: Value) -> Evidence:
    """One value minus the other that says most: one that beats it, or the closest.

    It is best only if it beats every other one, each beyond chance: p is the largest of theirs.
    That it is not best takes one that beats it, with Holm's correction for their number.
    """
    compared = [pair(a, order, ours, value) for value in a.runs[order] if value != ours]
    beaten = [e for e in corrected(compared) if e.outcome == FAILS]
    if beaten:
        return min(beaten, key=_lead)
    missing = [e for e in compared if e.outcome == MISSING]
    return missing[0] if missing else max(compared, key=lambda e: (e.p or 0.0, -_lead(e)))


def _lead(e: Evidence) -> float:
    return e.estimate.mean if e.estimate else 0.0
