"""The main tables: Ω_all and μ_all of every learner, who is first, and VERSE against its rivals."""

from __future__ import annotations

from typing import Any

from verse.reports import statistics
from verse.reports.cells import (
    Bench,
    Results,
    Sorted,
    competes,
    fine_tunes,
    orders_of,
    ranked,
)
from verse.reports.statistics import Estimate
from verse.reports.tables import Table, Text

MARK = "ᶠ"
RULE = (
    "Mean ± half of the 95 % interval over seeds and test videos. Bold: the best streaming method; "
    "it is first where the paired interval of its lead over every rival excludes zero, otherwise ≈ "
    f"marks it and those it is tied with. {MARK}: fine-tunes on its memory before it answers, and "
    "does not compete. μ_all is the mean accuracy, without division by Offline."
)


def standing(cells: dict[str, dict[str, Results]], order: str) -> dict[str, str]:
    """Competing learner → "first", "tied" or ""."""
    names = ranked(cells, order)
    if not names:
        return {}
    best = names[0]
    tied = []
    for name in names[1:]:
        lead = statistics.difference(cells[best][order], cells[name][order])
        if lead is None or not lead.excludes_zero:
            tied.append(name)
    place = dict.fromkeys(names, "") | dict.fromkeys(tied, "tied")
    return place | {best: "tied" if tied else "first"}


def records(found: Sorted) -> list[dict[str, Any]]:
    """One record per cell of the main tables, for JSON and CSV."""
    listed = []
    for bench in found.benches:
        cells, conditions = found.main(bench), found.conditions(bench)
        for order in orders_of(cells):
            place = standing(cells, order)
            best = next(iter(ranked(cells, order)), None)
            for name, by in cells.items():
                if order not in by:
                    continue
                omega, mu = statistics.omega(by[order]), statistics.mu(by[order])
                first = by[order][0]
                listed.append({
                    "dataset": bench.dataset,
                    "order": order,
                    "learner": name,
                    "backbone": bench.backbone,
                    **_parts("", omega),
                    "n": mu.n,
                    **_parts("mu_", mu),
                    "place": place.get(name, "does not compete"),
                    "best": name == best,
                    "capacity": conditions.capacity,
                    "thin": bench.thin,
                    "holdout": bench.holdout,
                    "settings": dict(first.run.settings),
                })  # fmt: skip
    return listed


def _parts(prefix: str, estimate: Estimate | None) -> dict[str, float | None]:
    names = ("mean", "low", "high")
    return {f"{prefix}{n}": None if estimate is None else getattr(estimate, n) for n in names}


def table(found: Sorted, bench: Bench, listed: list[dict[str, Any]]) -> Table:
    """Learners × orderings of one data set and backbone, Ω_all and μ_all."""
    cells = found.main(bench)
    orders = orders_of(cells)
    mine = [r for r in listed if _of(r, bench)]
    by = {(r["learner"], r["order"]): r for r in mine}
    head = ["learner"]
    for order in orders:
        head += [f"{order} Ω_all", f"{order} μ_all"]
    rows = []
    for name in cells:
        row = [Text(f"{name}{MARK}" if fine_tunes(name) else name)]
        for order in orders:
            row += _pair(by.get((name, order)))
        rows.append(row)
    rows.append(_offline_row(cells, orders))
    conditions = found.conditions(bench)
    about = f"Memory: {conditions.capacity}. Split: {_split(cells)}. {_seeds(mine)}"
    note = f"{about} {_gate(cells)}{RULE}"
    return Table(f"omega-{bench.slug}", f"Ω_all on {bench.title}", head, rows, note, mine)


def _of(record: dict[str, Any], bench: Bench) -> bool:
    return (record["dataset"], record["backbone"], record["thin"], record["holdout"]) == (
        bench.dataset, bench.backbone, bench.thin, bench.holdout,
    )  # fmt: skip


def _pair(record: dict[str, Any] | None) -> list[Text]:
    if record is None:
        return [Text("–"), Text("–")]
    sign = "≈" if record["place"] == "tied" else ""
    texts = []
    for prefix in ("", "mu_"):
        mean, low, high = (record[f"{prefix}{part}"] for part in ("mean", "low", "high"))
        bold = record["best"] and prefix == ""
        text = "–" if mean is None else f"{mean:.3f} ± {(high - low) / 2:.3f}"
        texts.append(Text(text + (sign if prefix == "" and mean is not None else ""), bold))
    return texts


def _offline_row(cells: dict[str, dict[str, Results]], orders: list[str]) -> list[Text]:
    row = [Text("Offline (bound)")]
    for order in orders:
        bounds = {r.run.seed: r.offline_alpha for by in cells.values() for r in by.get(order, [])}
        known = [sum(b) / len(b) for b in bounds.values() if b]
        row += [Text("1"), Text(f"{sum(known) / len(known):.3f}" if known else "–")]
    return row


def _split(cells: dict[str, dict[str, Results]]) -> str:
    first = next(iter(next(iter(cells.values())).values()))[0]
    return f"{first.split}; {first.frames:,} training and {first.test_frames:,} test frames"


def _gate(cells: dict[str, dict[str, Results]]) -> str:
    """Where Offline falls behind closed-form classifiers, Ω flatters everybody: say so."""
    runs = {(r.run.seed, order): r for by in cells.values() for order, rs in by.items() for r in rs}
    bounds = [bound for run in runs.values() for bound in run.offline]
    weak = sum(not bound.sound for bound in bounds)
    if not bounds:
        return "No Offline was trained. "
    return (
        "Offline reaches ridge regression or LDA on the embedding that F starts with at "
        f"{len(bounds) - weak} of {len(bounds)} test events"
        f"{'; elsewhere Ω_all is too high' if weak else ''}. "
    )


def _seeds(mine: list[dict[str, Any]]) -> str:
    counts = sorted({r["n"] for r in mine})
    return f"Seeds: {counts[0]} to {counts[-1]}." if len(counts) > 1 else f"Seeds: {counts[0]}."


def overview(listed: list[dict[str, Any]]) -> Table:
    """Learners × (data set, ordering), Ω_all alone, of all data sets and backbones."""
    columns = list(dict.fromkeys((r["dataset"], r["backbone"], r["order"]) for r in listed))
    several = len({backbone for _, backbone, _ in columns}) > 1
    head = ["learner"] + [
        f"{dataset} {backbone if several else ''} {order}".replace("  ", " ")
        for dataset, backbone, order in columns
    ]
    by = {(r["learner"], r["dataset"], r["backbone"], r["order"]): r for r in listed}
    rows = []
    for name in dict.fromkeys(r["learner"] for r in listed):
        row = [Text(f"{name}{MARK}" if fine_tunes(name) else name)]
        for column in columns:
            record = by.get((name, *column))
            if record is None or record["mean"] is None:
                row.append(Text("–"))
            else:
                sign = "≈" if record["place"] == "tied" else ""
                row.append(Text(f"{record['mean']:.3f}{sign}", record["best"]))
        rows.append(row)
    return Table("omega", "Ω_all of all methods", head, rows, RULE, listed)


def verdicts(found: Sorted) -> list[dict[str, Any]]:
    """VERSE and each variant against the best rival of every cell, with Holm's correction."""
    listed: list[dict[str, Any]] = []
    for bench in found.benches:
        cells = found.main(bench)
        for order in orders_of(cells):
            names = ranked(cells, order)
            rival = next((n for n in names if not n.startswith("verse")), None)
            for name in (n for n in names if n.startswith("verse")):
                if rival is not None:
                    listed.append(_verdict(bench, order, name, rival, cells))
    for name in {record["learner"] for record in listed}:
        tested = [r for r in listed if r["learner"] == name and r["p"] is not None]
        for record, p in zip(tested, statistics.holm([r["p"] for r in tested]), strict=True):
            record["p_holm"] = p
    return listed


def _verdict(
    bench: Bench, order: str, name: str, rival: str, cells: dict[str, dict[str, Results]]
) -> dict[str, Any]:
    ours, theirs = cells[name][order], cells[rival][order]
    lead = statistics.difference(ours, theirs)
    verdict = "no common seeds"
    if lead is not None:
        verdict = "tied" if not lead.excludes_zero else "first" if lead.low > 0 else "behind"
    return {
        "dataset": bench.dataset,
        "backbone": bench.backbone,
        "order": order,
        "learner": name,
        "rival": rival,
        **_parts("lead_", lead),
        "n": 0 if lead is None else lead.n,
        "p": statistics.p_value(ours, theirs),
        "p_holm": None,
        "verdict": verdict,
    }


def verdict_table(listed: list[dict[str, Any]]) -> Table:
    """The verdicts for people."""
    head = ["learner", "data set", "backbone", "ordering", "best rival", "lead", "95 % interval",
            "seeds", "p (Holm)", "verdict"]  # fmt: skip
    rows = []
    for r in sorted(listed, key=lambda r: r["learner"]):
        lead, p = r["lead_mean"], r["p_holm"]
        interval = "–" if lead is None else f"{r['lead_low']:+.3f} … {r['lead_high']:+.3f}"
        cells = [r["learner"], r["dataset"], r["backbone"], r["order"], r["rival"],
                 "–" if lead is None else f"{lead:+.3f}", interval, str(r["n"]),
                 "–" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"]  # fmt: skip
        rows.append([*map(Text, cells), Text(r["verdict"], r["verdict"] == "first")])
    note = (
        "Lead in Ω_all (μ_all without Offline) over the best streaming method that is no variant "
        "of VERSE, on the seeds both have; first only where the interval excludes zero. p: paired "
        "t-test over seeds, corrected by Holm over all cells of the learner."
    )
    return Table("verdicts", "VERSE against the best rival", head, rows, note, listed)


def competitors(found: Sorted, bench: Bench) -> list[str]:
    """Competing learners by their mean over all orderings, the best first."""
    cells = found.main(bench)
    mean = {
        name: sum(statistics.mu(runs).mean for runs in by.values()) / len(by)
        for name, by in cells.items()
        if competes(name)
    }
    return sorted(mean, key=lambda name: -mean[name])
