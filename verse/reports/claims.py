"""What the paper claims, and what the finished runs say about it.

A claim is a set of comparisons, each a paired difference that is positive where the claim is right.
It is refuted where one of them lies below zero beyond chance, confirmed where all lie above, not
confirmed where one of them shows that there is no effect to speak of, and undecided otherwise, with
the runs that are missing or the comparisons that are too close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from verse import streams
from verse.reports import statistics
from verse.reports.ablations import EMA_LEVELS, SYMBOLS, Ablation
from verse.reports.cells import Results, Sorted, orders_of
from verse.reports.evidence import (
    FAILS,
    HOLDS,
    MISSING,
    NEGLIGIBLE,
    NONE,
    OPEN,
    Evidence,
    best,
    corrected,
    judged,
    pair,
)
from verse.reports.losses import Curve
from verse.reports.paper import margins
from verse.reports.statistics import ENOUGH, Estimate
from verse.reports.tables import Table, Text, signed

ALL = streams.names()
TEMPORAL = ("instance", "class-instance")
OTHERS = [order for order in ALL if order != "instance"]
LITTLE = 0.02  # less is little: where a claim says so of a gain
SETS = {"eth80", "gtsrb", "icub_camera"}
CELLS = 12  # of the comparison: these data sets in four orderings
LISTED = 4  # comparisons that hold and are listed, the closest first


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
        """Confirmed, refuted, not confirmed (no effect) or undecided."""
        outcomes = {e.outcome for e in self.evidence}
        if FAILS in outcomes:
            return "refuted"
        if outcomes == {HOLDS} and not self.missing:
            return "confirmed"
        return "not confirmed" if NONE in outcomes else "undecided"

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
            parts.append(f"too close in {len(close)}: {'; '.join(close)}")
        lacking = [e.text for e in self.evidence if e.outcome == MISSING] + self.missing
        if lacking:
            parts.append(f"missing: {'; '.join(lacking)}")
        return ". ".join(parts)

    def _count(self, outcome: str) -> int:
        return sum(e.outcome == outcome for e in self.evidence)

    def record(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "claim": self.name, "text": self.text, "where": self.where, "verdict": self.verdict,
            "why": self.why, "missing": self.missing, "figure": self.figure,
            "remark": self.remark,
            "evidence": [
                {"where": e.where, "what": e.what, "measure": e.measure, "outcome": e.outcome}
                | ({} if e.estimate is None else e.estimate.record | {"p_holm": e.p})
                for e in self.evidence
            ],
        }  # fmt: skip


def evaluate(
    found: Sorted,
    verdicts: Sequence[dict[str, Any]],
    of_paper: Sequence[dict[str, Any]],
    ablations: Sequence[Ablation],
) -> list[Claim]:
    """Every claim, on every data set that has runs for it."""
    of = {knob: [a for a in ablations if a.knob.name == knob and a.learner == "verse"]
          for knob in ("capacity", "lam", "r", "ema", "policy")}  # fmt: skip
    low, high = margins()
    claims = [
        _first("first", f"VERSE is first in every cell (in the paper: in all {CELLS}).", verdicts,
               found, "leads"),
        _first("first-of-paper", "VERSE is first in every cell among the methods that the paper "
               "compares.", of_paper, found,
               remark=f"In the paper its margins go from {low:+.4f} to {high:+.4f}"),
    ]  # fmt: skip
    for name, text, knob, orders, compare in TURNED:
        recipe = f"recipes/ablation-{RECIPES.get(knob, knob)}.toml"
        made = [_claim(name, text, a, orders, shown) for a in of[knob] if (shown := compare(a))]
        claims += made or [Claim(name, text, "–", missing=[f"verse compare {recipe}"])]
    claims += _between(found, "maml", "VERSE beats look-ahead MAML in every ordering.",
                       ("la-maml", "c-maml"), "mu", "maml")  # fmt: skip
    claims += _between(found, "virtual-step", "The virtual step helps: VERSE beats itself with "
                       "α = 0.", ("verse-no-virtual",), "omega", "omega")  # fmt: skip
    claims += _between(found, "new-sample", "Not of the paper: VERSE gains where the global loss "
                       "has the new sample too.", ("verse",), "omega", "omega",
                       ours="verse-new-sample", recipe="ablation-literal")  # fmt: skip
    return claims + _losses(found)


def _claim(
    name: str, text: str, a: Ablation, orders: Sequence[str], evidence: list[Evidence]
) -> Claim:
    only = "only " if any(order not in a.runs for order in orders) else ""
    where = f"{a.bench.title}: {only}{', '.join(dict.fromkeys(e.where for e in evidence))}"
    return Claim(name, text, where, corrected(evidence), figure=a.name, remark=a.base)


def _best(a: Ablation, value: float, orders: Sequence[str]) -> list[Evidence]:
    """A value against all others; nothing where it was not among several."""
    there = [order for order in a.runs if order in orders]
    if not any(value in a.runs[order] and len(a.runs[order]) > 2 for order in there):
        return []
    return [best(a, order, value) for order in there]


def _pairs(a: Ablation, ours: Any, theirs: Any, orders: Sequence[str]) -> list[Evidence]:
    """One value against another; nothing where they never meet."""
    there = [order for order in a.runs if order in orders]
    if not any({ours, theirs} <= set(a.runs[order]) for order in there):
        return []
    return [pair(a, order, ours, theirs) for order in there]


def _larger(a: Ablation) -> list[Evidence]:
    return [pair(a, order, max(by), min(by)) for order, by in a.runs.items()]


def _little(a: Ablation) -> list[Evidence]:
    """A gain below ``LITTLE`` is little: what is judged is how far below."""
    listed = []
    for gain in _pairs(a, 0.3, 0.0, ALL):
        if gain.estimate is None:
            listed.append(gain)
            continue
        by = a.runs[gain.where]
        rest = statistics.contrast([(-1.0, by[0.3]), (1.0, by[0.0])], a.measure, LITTLE)
        listed.append(judged(gain.where, f"{LITTLE} − gain", a.measure, rest))
    return listed


def _ema_most(a: Ablation) -> list[Evidence]:
    """The gain over the teacher θ in temporal orderings minus that in the others."""
    ema, theta = EMA_LEVELS[3], EMA_LEVELS[1]
    there = [o for o, by in a.runs.items() if ema in by and theta in by]
    sides = [[o for o in there if (o in TEMPORAL) == side] for side in (True, False)]
    if len(there) < len(streams.names()):
        return []
    parts: list[tuple[float, Results]] = []
    for sign, orders in zip((1.0, -1.0), sides, strict=True):
        for order in orders:
            share = sign / len(orders)
            parts += [(share, a.runs[order][ema]), (-share, a.runs[order][theta])]
    what = "gain in instance and class-instance − gain in iid and class-iid"
    gain = statistics.contrast(parts, a.measure)
    return [judged("all orderings", what, a.measure, gain, margin=NEGLIGIBLE)]


def _policy(a: Ablation) -> list[Evidence]:
    return [best(a, order, "reservoir" if order in TEMPORAL else "class-balanced")
            for order in a.runs]  # fmt: skip


RECIPES = {"lam": "lambda"}
Compare = Callable[[Ablation], list[Evidence]]
TURNED: tuple[tuple[str, str, str, Sequence[str], Compare], ...] = (
    ("capacity", "A larger memory helps (largest − smallest).", "capacity", ALL, _larger),
    ("lambda", "λ = 0.3 is best in every ordering.", "lam", ALL,
     lambda a: _best(a, 0.3, ALL)),
    ("distillation", f"Distillation alone adds little (λ = 0.3 against 0, less than {LITTLE}).",
     "lam", ALL, _little),
    ("r", "The acceptance rate r = 0.4 is best (but in instance ordering).", "r", OTHERS,
     lambda a: _best(a, 0.4, OTHERS)),
    ("r-more", "r = 0.5 is worse than 0.4.", "r", ALL,
     lambda a: _pairs(a, 0.4, 0.5, ALL)),
    ("r-instance", "r = 0 is best in instance ordering.", "r", ["instance"],
     lambda a: _best(a, 0.0, ["instance"])),
    ("ema", "A semantic memory by moving average is a better teacher than θ itself.", "ema",
     ALL,
     lambda a: _pairs(a, EMA_LEVELS[3], EMA_LEVELS[1], ALL)),
    ("ema-copy", "Without averaging (a hard copy, γ = 0) temporal orderings degrade.", "ema",
     TEMPORAL,
     lambda a: _pairs(a, EMA_LEVELS[3], EMA_LEVELS[2], TEMPORAL)),
    ("ema-temporal", "The moving average matters most in temporal orderings.", "ema", ALL,
     _ema_most),
    ("policy", "Reservoir is best for instance and class-instance, class-balanced for iid and "
     "class-iid.", "policy", ALL, _policy),
)  # fmt: skip


def _first(
    name: str,
    text: str,
    verdicts: Sequence[dict[str, Any]],
    found: Sorted,
    figure: str = "",
    remark: str = "",
) -> Claim:
    """In all cells of the comparison proper; on other data in those that there are."""
    ours = [v for v in verdicts if v["learner"] == "verse" and v["counted"]]
    outcomes = {"first": HOLDS, "loss": FAILS, "tied": OPEN, "undecided": MISSING}
    evidence, missing = [], []
    for v in ours:
        where = f"{v['dataset']} {v['order']}"
        e = None if v["verdict"] == "undecided" else Estimate(
            v["lead_mean"], v["lead_low"], v["lead_high"], v["n"])  # fmt: skip
        what = f"VERSE − {v['rival']}"
        if e is None:
            what += f": fewer than {ENOUGH} seeds of {', '.join(v['not_compared'])}"
        evidence.append(Evidence(where, what, v["measure"], e, outcomes[v["verdict"]]))
    elsewhere = evidence and not SETS & {bench.dataset for bench in found.compared}
    if len(evidence) < CELLS and not elsewhere:
        missing.append(f"{CELLS - len(evidence)} cells of {CELLS}: verse compare "
                       "recipes/omega-{eth80,gtsrb,icub}.toml")  # fmt: skip
    sets = ", ".join(dict.fromkeys(bench.title for bench in found.compared))
    return Claim(name, text, sets or "–", evidence, missing, figure if evidence else "", remark)


def _between(
    found: Sorted,
    name: str,
    text: str,
    rivals: Sequence[str],
    measure: str,
    figure: str,
    *,
    ours: str = "verse",
    recipe: str = "omega-eth80",
) -> list[Claim]:
    """VERSE, or a variant of it, against other rows of the main tables."""
    claims = []
    for bench in found.benches:
        cells = found.main(bench)
        there = [rival for rival in rivals if rival in cells]
        if ours not in cells or not there:
            continue
        evidence = []
        for order in orders_of({ours: cells[ours]}):
            for rival in there:
                mine, theirs = (cells[n].get(order, []) for n in (ours, rival))
                used = "mu" if measure == "mu" else statistics.metric(mine, theirs)
                lead = statistics.difference(mine, theirs, used) if mine and theirs else None
                what = f"{_named(ours)} − {_named(rival)}"
                evidence.append(judged(order, what, used, lead, margin=NEGLIGIBLE))
        claims.append(Claim(name, text, bench.title, corrected(evidence),
                            figure=f"{figure}-{bench.slug}"))  # fmt: skip
    absent = rivals if ours == "verse" else [ours]
    lacking = [f"{', '.join(absent)}: verse compare recipes/{recipe}.toml"]
    return claims or [Claim(name, text, "–", missing=lacking)]


def _named(learner: str) -> str:
    return "VERSE" if learner == "verse" else learner


def _losses(found: Sorted) -> list[Claim]:
    """At the end both losses are lower than before, and than a tenth of what guessing costs."""
    text = (
        "Both losses, of the virtual and of the global step, approach zero (here: over the last "
        "tenth of the stream they lie below their mean over its first half, and below a tenth of "
        "ln K, what guessing among K classes costs)."
    )
    claims = []
    for (bench, settings), curves in found.losses_of_verse.items():
        evidence = [e for order in streams.names() for e in _falls(order, curves)]
        claims.append(Claim("losses", text, bench.title, corrected(evidence),
                            figure=f"losses-{bench.slug}", remark=settings))  # fmt: skip
    command = "verse run DATASET --out NAME.json --track jsonl:NAME.jsonl, in results/losses"
    return claims or [Claim("losses", text, "–", missing=[command])]


def _falls(order: str, curves: Iterable[Curve]) -> list[Evidence]:
    there = [c for c in curves if c.result.run.order == order]
    if not there:
        return []
    guess = math.log(len(there[0].result.classes))
    listed = []
    for name, symbol in (("loss_v", "L_v"), ("loss", "L")):
        early, late = ([value(c, name) for c in there] for value in (Curve.early, Curve.late))
        fallen = statistics.of_numbers([a - b for a, b in zip(early, late, strict=True)])
        what = f"{symbol} of the first half − at the end"
        listed.append(judged(order, what, "loss", fallen))
        rest = statistics.of_numbers([guess / 10 - value for value in late])
        what = f"ln K / 10 − {symbol} at the end ({sum(late) / len(late):.3f})"
        listed.append(judged(order, what, "loss", rest))
    return listed


def table(claims: Sequence[Claim]) -> Table:
    """One row for each claim and data set."""
    rows = [
        [Text(c.text, link=c.figure), Text(c.where), Text(c.verdict, c.verdict != "undecided"),
         Text(". ".join(filter(None, (c.why, c.remark))))]
        for c in claims
    ]  # fmt: skip
    note = (
        "Every comparison is a paired difference on common seeds with its 95 % interval, positive "
        "where the claim is right. Confirmed: all of them lie above zero. Refuted: at least one "
        "lies below. Above and below are tested with Holm's correction over the comparisons of a "
        "claim (the first two claims take the verdicts of the cells as they are, without it). Not "
        f"confirmed: none lies below, and at least one is no effect: its interval within ± "
        f"{NEGLIGIBLE}. Undecided: the rest, or fewer than {ENOUGH} seeds."
    )
    return Table("claims", "Confirmed or refuted", ["claim", "where", "verdict", "figures"], rows,
                 note, [{k: v for k, v in c.record().items() if k != "evidence"} for c in claims],
                 prose=True)  # fmt: skip


def evidence_table(claims: Sequence[Claim]) -> Table:
    """One row for each comparison."""
    rows, records = [], []
    for c in claims:
        for e in c.evidence:
            estimate = e.estimate
            cells = ["–"] * 4 if estimate is None else [
                signed(estimate.mean, 4),
                f"{signed(estimate.low, 4)} … {signed(estimate.high, 4)}",
                str(estimate.n), "–" if e.p is None else f"{e.p:.3f}"]  # fmt: skip
            symbol = SYMBOLS.get(e.measure, e.measure)
            data = c.where.partition(":")[0] if not c.name.startswith("first") else ""
            rows.append([Text(t) for t in (c.name, data, e.where, e.what, symbol, *cells,
                                           e.outcome)])  # fmt: skip
            records.append({"claim": c.name, "data": data, "where": e.where, "what": e.what,
                            "measure": e.measure, "outcome": e.outcome}
                           | ({} if estimate is None else estimate.record | {"p_holm": e.p})
                           )  # fmt: skip
    head = ["claim", "data set", "where", "compared", "measure", "difference", "95 % interval",
            "seeds", "p (Holm)", "outcome"]  # fmt: skip
    note = (
        "p: of the difference's being chance, from the same draws of seeds and test videos as its "
        "interval, with Holm's correction over the comparisons of a claim on a data set."
    )
    return Table("claims-evidence", "The comparisons behind them", head, rows, note, records)
