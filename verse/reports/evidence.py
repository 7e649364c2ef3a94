"""Comparisons that speak for or against a claim: paired differences, judged by their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verse.reports import statistics
from verse.reports.ablations import Ablation
from verse.reports.statistics import ENOUGH, Estimate
from verse.reports.tables import signed

HOLDS, FAILS, OPEN, MISSING = "holds", "fails", "too close", "missing"


@dataclass(frozen=True)
class Evidence:
    """One comparison: positive where the claim is right."""

    where: str
    what: str
    measure: str
    estimate: Estimate | None
    outcome: str

    @property
    def text(self) -> str:
        """In short: the difference and its interval."""
        e = self.estimate
        if e is None:
            return f"{self.where}: {self.what}"
        mean, low, high = (signed(value) for value in e[:3])
        return f"{self.where}: {self.what} {mean} ({low} … {high})"


def judged(where: str, what: str, measure: str, e: Estimate | None) -> Evidence:
    """Above zero it holds, below it fails; without enough seeds it is missing."""
    if e is None or not e.enough:
        seeds = 0 if e is None else e.n
        return Evidence(where, f"{what}: {seeds} of {ENOUGH} common seeds", measure, None, MISSING)
    outcome = HOLDS if e.low > 0 else FAILS if e.high < 0 else OPEN
    return Evidence(where, what, measure, e, outcome)


def pair(a: Ablation, order: str, ours: Any, theirs: Any) -> Evidence:
    """One value of a knob minus another."""
    by, what = a.runs[order], f"{ours} − {theirs}"
    if ours not in by or theirs not in by:
        absent = [str(v) for v in (ours, theirs) if v not in by]
        return Evidence(order, f"{what}: no {', '.join(absent)}", a.measure, None, MISSING)
    return judged(order, what, a.measure, statistics.difference(by[ours], by[theirs], a.measure))


def best(a: Ablation, order: str, ours: Any) -> Evidence:
    """One value minus the best of the others: the one over which its lead is smallest."""
    by = a.runs[order]
    leads = {v: statistics.difference(by[ours], runs, a.measure)
             for v, runs in by.items() if v != ours and ours in by}  # fmt: skip
    known = {v: lead for v, lead in leads.items() if lead is not None}
    if not known:
        return Evidence(order, f"{ours} against others", a.measure, None, MISSING)
    other = min(known, key=lambda v: known[v].mean)
    return judged(order, f"{ours} − {other}, the best other", a.measure, known[other])
