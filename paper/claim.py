"""One claim of the paper and what speaks for and against it; tables of claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from paper.ablations import SYMBOLS
from paper.evidence import FAILS, HOLDS, MISSING, NEGLIGIBLE, NONE, OPEN, Evidence
from verse.reports.statistics import ENOUGH
from verse.reports.tables import Table, Text, format_signed

LISTED = 4  # comparisons that hold and are listed, the closest first
REFUSED = "not reproduced in this regime"


@dataclass(frozen=True)
class Claim:
    """A statement with its comparisons on one data set, in the orderings that were run there."""

    name: str
    text: str
    where: str
    evidence: list[Evidence] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    figure: str = ""
    remark: str = ""

    @property
    def verdict(self) -> str:
        """Confirmed, partly, not reproduced, not confirmed (no effect) or undecided, in this
        regime."""
        outcomes = {e.outcome for e in self.evidence}
        if FAILS in outcomes:
            return REFUSED
        if outcomes == {HOLDS} and not self.missing:
            return "confirmed"
        if {HOLDS, NONE} <= outcomes:
            return f"partly: holds in {self._count(HOLDS)} of {len(self.evidence)}"
        return "not confirmed" if NONE in outcomes else "undecided"

    @property
    def short(self) -> str:
        """How many comparisons hold, and where the others are: they are listed elsewhere."""
        every = len(self.evidence)
        parts = []
        for outcome in (HOLDS, FAILS, NONE, OPEN, MISSING):
            there = [e.where for e in self.evidence if e.outcome == outcome]
            where = f"{len(there)} of {every}"
            if outcome != HOLDS and len(there) < every and len(set(there)) <= LISTED:
                where = ", ".join(dict.fromkeys(there))
            if there:
                parts.append(f"{outcome} in {where}")
        parts += [f"missing: {each}" for each in self.missing]
        return "; ".join(parts)

    @property
    def why(self) -> str:
        """What decides it: the comparisons that fail, or what is open, or how many hold."""
        failed = [e.text for e in self.evidence if e.outcome == FAILS]
        if failed:
            rest = f"; holds in {self._count(HOLDS)}" if self._count(HOLDS) else ""
            return f"fails in {len(failed)} of {len(self.evidence)}: {'; '.join(failed)}{rest}"
        parts = []
        held = [e for e in self.evidence if e.outcome == HOLDS]
        if held:
            held.sort(key=lambda e: e.estimate.low if e.estimate else 0.0)
            listed = "; ".join(e.text for e in held[:LISTED])
            closest = "" if len(held) <= LISTED else ", the closest of them"
            parts.append(f"holds in {len(held)} of {len(self.evidence)}{closest}: {listed}")
        none = [e.text for e in self.evidence if e.outcome == NONE]
        if none:
            parts.append(f"no effect in {len(none)}: {'; '.join(none)}")
        close = [e.text for e in self.evidence if e.outcome == OPEN]
        if close:
            parts.append(f"{OPEN} in {len(close)}: {'; '.join(close)}")
        lacking = [e.text for e in self.evidence if e.outcome == MISSING] + self.missing
        if lacking:
            parts.append(f"missing: {'; '.join(lacking)}")
        return ". ".join(parts)

    def _count(self, outcome: str) -> int:
        return sum(e.outcome == outcome for e in self.evidence)

    def record(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "claim": self.name,
            "text": self.text,
            "where": self.where,
            "verdict": self.verdict,
            "why": self.why,
            "missing": self.missing,
            "figure": self.figure,
            "remark": self.remark,
            "evidence": [
                {"where": e.where, "what": e.what, "measure": e.measure, "outcome": e.outcome}
                | ({} if e.estimate is None else e.estimate.record | {"p_holm": e.p})
                for e in self.evidence
            ],
        }


def table(claims: Sequence[Claim]) -> Table:
    """One row for each claim and data set."""
    rows = [
        [
            Text(c.text, link=c.figure),
            Text(c.where),
            Text(c.verdict, c.verdict != "undecided"),
            Text(". ".join(filter(None, (c.short, c.remark)))),
        ]
        for c in claims
    ]
    note = (
        "Every comparison is a paired difference on common seeds with its 95 % interval, positive "
        "where the claim is right. Confirmed: all of them lie above zero. Not reproduced: at least "
        "one lies below. p and intervals have Holm's correction over the comparisons of a claim; "
        "for being first these are the cells, each corrected over its rivals before, so VERSE may "
        "be behind in a cell taken alone and not told apart among so many. "
        "Not confirmed: none lies below or above, and at least one is no effect, its interval "
        f"within ± {NEGLIGIBLE}; partly, if others lie above. Undecided: the rest, or fewer than "
        f"{ENOUGH} seeds."
    )
    records = [{k: v for k, v in c.record().items() if k != "evidence"} for c in claims]
    return Table(
        "claims",
        "What is reproduced",
        ["claim", "where", "verdict", "figures"],
        rows,
        note,
        records,
        prose=True,
    )


def evidence_table(claims: Sequence[Claim]) -> Table:
    """One row for each comparison."""
    rows, records = [], []
    for c in claims:
        for e in c.evidence:
            estimate, symbol = e.estimate, SYMBOLS.get(e.measure, e.measure)
            data = c.where.partition(":")[0]  # with the backbone: a data set may have two
            where = e.where if c.name.startswith("first") else f"{data}, {e.where}"
            cells = (
                ["–"] * 3
                if estimate is None
                else [
                    f"{format_signed(estimate.mean, 4)} ({format_signed(estimate.low, 4)} … "
                    f"{format_signed(estimate.high, 4)})",
                    str(estimate.n),
                    "–" if e.p is None else f"{e.p:.3f}",
                ]
            )
            rows.append(
                [
                    Text(t)
                    for t in (c.name, where, f"{e.said or e.what} ({symbol})", *cells, e.outcome)
                ]
            )
            records.append(
                {
                    "claim": c.name,
                    "data": c.where.partition(":")[0],
                    "where": e.where,
                    "what": e.what,
                    "measure": e.measure,
                    "outcome": e.outcome,
                }
                | ({} if estimate is None else estimate.record | {"p_holm": e.p})
            )
    head = ["claim", "where", "compared", "difference", "seeds", "p", "outcome"]
    note = (
        "p agrees with the interval; both have Holm's correction over the comparisons of a claim "
        "on a data set. Where a gain is claimed to be small, the difference is how far it lies "
        "below what is claimed."
    )
    return Table("claims-evidence", "The comparisons behind them", head, rows, note, records)
