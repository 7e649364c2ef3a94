"""What the paper claims, and what the finished runs say about it.

A claim is a set of comparisons, each a paired difference that is positive where the claim is right.
It is not reproduced where one of them lies below zero beyond chance, confirmed where all lie above,
not confirmed where one of them shows that there is no effect to speak of (partly, if others lie
above), and undecided otherwise, with the runs that are missing or the comparisons that are not told
apart. All of this is said of the regime of the runs: their length and memory are not the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from paper.ablations import Ablation
from paper.claim import Claim
from paper.evidence import (
    NEGLIGIBLE,
    Evidence,
    best,
    corrected,
    judged,
    of_verdict,
    pair,
)
from paper.knobs import EMA_LEVELS, Value
from paper.losses import Curve
from paper.published import margins
from paper.source import PaperResults
from paper.verdicts import CISLL_MEANS, Verdict
from verse import streams
from verse.reports import statistics
from verse.reports.cells import Bench, Results, orders_of
from verse.reports.tables import format_signed

ALL = streams.names()
TEMPORAL = ("instance", "class-instance")
OTHERS = [order for order in ALL if order != "instance"]
LITTLE = 0.02  # less is little: where a claim says so of a gain
PAPER_CELLS = 12  # of the paper's table


def evaluate(
    found: PaperResults,
    of_paper: Sequence[Verdict],
    conforming: Sequence[Verdict],
    ablations: Sequence[Ablation],
) -> list[Claim]:
    """Every claim, on every data set that has runs for it."""
    of = {
        knob: [a for a in ablations if a.knob.name == knob and a.learner == "verse"]
        for knob in ("capacity", "lam", "r", "ema", "policy")
    }
    low, high = margins()
    claims = [
        _first(
            "first",
            f"VERSE is first in every cell (in the paper: in all {PAPER_CELLS}) among the "
            "methods that the paper compares.",
            of_paper,
            found,
            "leads",
            f"In the paper its margins in Ω go from {low:+.4f} to {high:+.4f}",
        ),
        _first(
            "first-conforming",
            "The same among those of them that keep to class-incremental streaming learning: "
            f"{CISLL_MEANS}.",
            conforming,
            found,
        ),
    ]
    for name, text, knob, orders, compare in TURNED:
        recipe = found.comparison.ablations[knob]
        made = [_claim(name, text, a, orders, shown) for a in of[knob] if (shown := compare(a))]
        claims += made or [Claim(name, text, "–", missing=[f"verse compare {recipe}"])]
    claims += _between(
        found,
        "maml",
        "VERSE beats look-ahead MAML in every ordering.",
        ("la-maml", "c-maml"),
        "mu",
        "maml",
    )
    claims += _between(
        found,
        "virtual-step",
        "The virtual step helps: VERSE beats itself with α = 0.",
        ("verse-no-virtual",),
        "omega",
        "omega",
    )
    claims += _between(
        found,
        "new-sample",
        "Not of the paper: VERSE gains where the global loss has the new sample too.",
        ("verse",),
        "omega",
        "omega",
        ours="verse-new-sample",
        recipe="recipes/ablation-literal.toml" if found.comparison.thinned else "",
    )
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


def _pairs(a: Ablation, ours: Value, theirs: Value, orders: Sequence[str]) -> list[Evidence]:
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
        said = (
            f"gain of λ = 0.3 over 0: {format_signed(gain.estimate.mean)}, claimed below {LITTLE:g}"
        )
        listed.append(judged(gain.where, f"{LITTLE} − gain", a.measure, rest, said=said))
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
    return [
        best(a, order, "reservoir" if order in TEMPORAL else "class-balanced") for order in a.runs
    ]


Compare = Callable[[Ablation], list[Evidence]]
TURNED: tuple[tuple[str, str, str, Sequence[str], Compare], ...] = (
    ("capacity", "A larger memory helps (largest − smallest).", "capacity", ALL, _larger),
    ("lambda", "λ = 0.3 is best in every ordering.", "lam", ALL, lambda a: _best(a, 0.3, ALL)),
    (
        "distillation",
        f"Distillation alone adds little (λ = 0.3 against 0, less than {LITTLE}).",
        "lam",
        ALL,
        _little,
    ),
    (
        "r",
        "The acceptance rate r = 0.4 is best (but in instance ordering).",
        "r",
        OTHERS,
        lambda a: _best(a, 0.4, OTHERS),
    ),
    ("r-more", "r = 0.5 is worse than 0.4.", "r", ALL, lambda a: _pairs(a, 0.4, 0.5, ALL)),
    (
        "r-instance",
        "r = 0 is best in instance ordering.",
        "r",
        ["instance"],
        lambda a: _best(a, 0.0, ["instance"]),
    ),
    (
        "ema",
        "A semantic memory by moving average is a better teacher than θ itself.",
        "ema",
        ALL,
        lambda a: _pairs(a, EMA_LEVELS[3], EMA_LEVELS[1], ALL),
    ),
    (
        "ema-copy",
        "Without averaging (a hard copy, γ = 0) temporal orderings degrade.",
        "ema",
        TEMPORAL,
        lambda a: _pairs(a, EMA_LEVELS[3], EMA_LEVELS[2], TEMPORAL),
    ),
    (
        "ema-temporal",
        "The moving average matters most in temporal orderings.",
        "ema",
        ALL,
        _ema_most,
    ),
    (
        "policy",
        "Reservoir is best for instance and class-instance, class-balanced for iid and class-iid.",
        "policy",
        ALL,
        _policy,
    ),
)


def _first(
    name: str,
    text: str,
    verdicts: Sequence[Verdict],
    found: PaperResults,
    figure: str = "",
    remark: str = "",
) -> Claim:
    """In all cells of the comparison proper; on other data in those that there are."""
    mine = [v for v in verdicts if v.learner == "verse" and v.counted]
    evidence, plan, missing = corrected([of_verdict(v) for v in mine]), found.comparison, []
    lacking = plan.missing({(v.dataset, v.order) for v in mine}) if mine else len(plan.cells)
    if lacking:
        missing.append(f"{lacking} cells of {len(plan.cells)}: verse compare {plan.recipe}")
    where = _places(found.compared) or "–"
    return Claim(name, text, where, evidence, missing, figure if evidence else "", remark)


def _places(benches: Sequence[Bench]) -> str:
    """Each data set once, then the backbone that they share."""
    sets = dict.fromkeys(bench.title.removesuffix(f", {bench.backbone}") for bench in benches)
    backbones = dict.fromkeys(bench.backbone for bench in benches)
    return ("; " if any("," in each for each in sets) else ", ").join([*sets, *backbones])


def _between(
    found: PaperResults,
    name: str,
    text: str,
    rivals: Sequence[str],
    measure: str,
    figure: str,
    *,
    ours: str = "verse",
    recipe: str = "",
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
        shown = f"{figure}-{bench.slug}"
        claims.append(Claim(name, text, found.title(bench), corrected(evidence), figure=shown))
    absent = rivals if ours == "verse" else [ours]
    needed = recipe or found.comparison.recipe
    lacking = [f"{', '.join(absent)}: verse compare {needed}"]
    return claims or [Claim(name, text, "–", missing=lacking)]


def _named(learner: str) -> str:
    return "VERSE" if learner == "verse" else learner


def _losses(found: PaperResults) -> list[Claim]:
    """At the end both losses are lower than before, and than a tenth of what guessing costs."""
    text = (
        "Both losses, of the virtual and of the global step, approach zero (here: over the last "
        "tenth of the stream they lie below their mean over its first half, and below a tenth of "
        "ln K, what guessing among K classes costs)."
    )
    claims = []
    for (bench, settings), curves in found.losses_of_verse.items():
        evidence = [e for order in streams.names() for e in _falls(order, curves)]
        claims.append(
            Claim(
                "losses",
                text,
                bench.title,
                corrected(evidence),
                figure=f"losses-{bench.slug}",
                remark=settings,
            )
        )
    return claims or [Claim("losses", text, "–", missing=["runs whose losses were recorded"])]


def _falls(order: str, curves: Iterable[Curve]) -> list[Evidence]:
    there = [c for c in curves if c.result.run.order == order]
    if not there:
        return []
    guess = math.log(len(there[0].result.classes))
    listed = []
    for name, symbol in (("loss_v", "L_v"), ("loss", "L")):
        early, late = ([value(c, name) for c in there] for value in (Curve.early, Curve.late))
        fallen = statistics.estimate_mean([a - b for a, b in zip(early, late, strict=True)])
        what = f"{symbol} of the first half − at the end"
        listed.append(judged(order, what, "loss", fallen))
        rest = statistics.estimate_mean([guess / 10 - value for value in late])
        what = f"ln K / 10 − {symbol} at the end ({sum(late) / len(late):.3f})"
        listed.append(judged(order, what, "loss", rest))
    return listed
