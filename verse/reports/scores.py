"""The main tables: μ_all and Ω_all of every learner in every cell, and which one is first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from verse.reports import statistics
from verse.reports.cells import (
    Bench,
    Cells,
    Results,
    SortedResults,
    fine_tunes,
    most_common,
    orders_of,
    rank_learners,
)
from verse.reports.statistics import ENOUGH, Estimate
from verse.reports.tables import Table, Text

Record = dict[str, Any]
"""What is known about one cell: a learner on a data set in an ordering."""

MARK = "ᶠ"
REFUSED = "✗"
SIGNS = {"tied": "≈", "undecided": "?"}
UNSOUND = "†"
RULE = (
    "Mean accuracy over the stream (μ_all) with its 95 % interval over seeds and test videos. Rows "
    "are ordered by it: by how many methods have a lower mean on the seeds that both have. Bold: "
    "the best streaming method, which here means every method that answers without fine-tuning "
    "first. It is first where the paired interval of its lead over every rival, with Holm's "
    "correction, excludes zero; otherwise ≈ marks it and those that are not told apart from it, "
    "which may be because their interval is wide. "
    f"?: fewer than {ENOUGH} seeds in common with a rival. {REFUSED}: it diverged in at least one "
    "run, where samples were refused because gradients were not finite. "
    f"{MARK}: fine-tunes on its memory before it answers, and does not compete."
)
ABOUT_OMEGA = (
    "Ω_all is the mean ratio to the best reference, the paper's Ω that to Offline trained by SGD, "
    "both over the seeds for which a reference was made. "
    f"{UNSOUND}: the reference failed its gate at a test event of a seed counted here, so Ω_all is "
    "too high there."
)


def find_standing(cells: Cells, order: str) -> dict[str, str]:
    """Competing learner → "first", "tied", "undecided" or ""; no entry without a rival."""
    names = rank_learners(cells, order)
    if len(names) < 2:
        return dict.fromkeys(names, "alone")
    best = names[0]
    place = dict.fromkeys(names, "undecided")
    leads = {
        name: lead
        for name in names[1:]
        if (lead := statistics.difference(cells[best][order], cells[name][order], "mu"))
        and lead.enough
    }
    # the same correction as where claims are judged: one of many rivals is behind by chance
    for name, lead in statistics.adjust(leads).items():
        place[name] = "" if lead.low > 0 else "tied"
    rivals = {place[name] for name in names[1:]}
    worst = next((word for word in ("undecided", "tied") if word in rivals), "first")
    return place | {best: worst}


def records(found: SortedResults) -> list[Record]:
    """One record per cell of the main tables, for JSON and CSV."""
    listed = []
    for bench in found.benches:
        cells, conditions = found.main(bench), found.conditions(bench)
        for order in orders_of(cells):
            place = find_standing(cells, order)
            best = next(iter(place), None)
            rank = {name: i for i, name in enumerate(place, 1)}
            for name, by in cells.items():
                if order not in by:
                    continue
                runs = by[order]
                omega, mu = statistics.omega(runs), statistics.mu(runs)
                bounds = [bound for r in runs for bound in r.offline]
                listed.append(
                    {
                        "dataset": bench.dataset,
                        "order": order,
                        "learner": name,
                        "backbone": bench.backbone,
                        **_parts("", omega),
                        "n": mu.n,
                        "omega_n": 0 if omega is None else omega.n,
                        "mu_all": mu.mean,
                        **_parts("mu_", mu),
                        **_parts("paper_", statistics.paper_omega(runs)),
                        "reference": ", ".join(sorted({r.reference for r in runs} - {""})),
                        "ceiling": _ceiling(runs),
                        "final": sum(r.alpha[-1] for r in runs) / len(runs),
                        "offline": sum(b.accuracy for b in bounds) / len(bounds)
                        if bounds
                        else None,
                        "gate_passed": all(b.sound for b in bounds) if bounds else None,
                        "place": place.get(name, "does not compete"),
                        "best": name == best and len(place) > 1,
                        "rank": rank.get(name),
                        "ms_per_sample": 1000
                        * median(r.learn_seconds / max(r.learned, 1) for r in runs),
                        "memory_samples": int(median(r.capacity for r in runs)),
                        "memory_bytes": int(median(r.memory_bytes for r in runs)),
                        "refused": sum(r.refused for r in runs),
                        "capacity": conditions.capacity,
                        "thin": bench.thin,
                        "length": conditions.length,
                        "holdout": bench.holdout,
                        "bench": bench.slug,
                        "settings": dict(runs[0].run.settings),
                    }
                )
    return listed


def _ceiling(runs: Results) -> float | None:
    """The mean share of test frames whose class was shown; None where it was not recorded."""
    known = [r.ceiling for r in runs if r.ceiling is not None]
    return sum(known) / len(known) if known else None


def _parts(prefix: str, estimate: Estimate | None) -> dict[str, float | None]:
    names = ("mean", "low", "high")
    return {f"{prefix}{n}": None if estimate is None else getattr(estimate, n) for n in names}


def format_name(learner: str) -> str:
    """A learner's name, marked if it does not compete."""
    return f"{learner}{MARK}" if fine_tunes(learner) else learner


def tabulate_scores(found: SortedResults, bench: Bench, listed: list[Record]) -> Table:
    """Learners × orderings of one data set and backbone: μ_all, the best on the whole first."""
    cells = found.main(bench)
    orders = orders_of(cells)
    mine = [r for r in listed if r["bench"] == bench.slug]
    by = {(r["learner"], r["order"]): r for r in mine}
    best = competitors(found, bench)
    rows = []
    for name in [*best, *(n for n in cells if n not in best)]:
        row = [Text(format_name(name)), *(format_score(by.get((name, order))) for order in orders)]
        rows.append([*row, Text(format_range([r["n"] for r in mine if r["learner"] == name]))])
    rows += _extra_rows(cells, orders, mine)
    conditions = found.conditions(bench)
    about = (
        f"Memory: {conditions.capacity}. Test frames: {_held_out(cells)}. Trained from: "
        f"{conditions.at}."
    )
    return Table(
        f"mu-{bench.slug}",
        f"μ_all on {bench.title}",
        ["learner", *orders, "seeds"],
        rows,
        f"{about} {RULE}",
        mine,
    )


def _extra_rows(cells: Cells, orders: list[str], mine: list[Record]) -> list[list[Text]]:
    """Below the learners: Offline, and the ceiling where it is below one."""
    rows = []
    bounds = {order: _bounds(cells, order) for order in orders}
    if any(bounds.values()):
        means = [
            "–" if not known else f"{_mean([_mean(alpha) for alpha in known.values()]):.3f}"
            for known in bounds.values()
        ]
        seeds = format_range([len(known) for known in bounds.values()])
        rows.append([Text("Offline (all data at once)"), *map(Text, means), Text(seeds)])
    ceilings = {
        order: [r["ceiling"] for r in mine if r["order"] == order and r["ceiling"] is not None]
        for order in orders
    }
    if any(value < 1 for known in ceilings.values() for value in known):
        text = [f"{_mean(known):.3f}" if known else "–" for known in ceilings.values()]
        rows.append([Text("Ceiling (classes shown)"), *map(Text, text), Text("")])
    return rows


def _bounds(cells: Cells, order: str) -> dict[int, list[float]]:
    """Seed → accuracy of Offline at each event; the same for all learners."""
    runs = (r for by in cells.values() for r in by.get(order, []))
    return {r.run.seed: r.offline_alpha for r in runs if r.offline_alpha}


def omega_table(found: SortedResults, bench: Bench, listed: list[Record]) -> Table | None:
    """Learners × orderings: Ω_all; None where no run has an Offline."""
    cells = found.main(bench)
    orders = orders_of(cells)
    mine = [r for r in listed if r["bench"] == bench.slug and r["mean"] is not None]
    by = {(r["learner"], r["order"]): r for r in mine}
    names = [name for name in competitors(found, bench) if any(n == name for n, _ in by)]
    names += [name for name in cells if name not in names and any(n == name for n, _ in by)]
    rows = []
    for name in names:
        figures = (by.get((name, order)) for order in orders)
        rows.append(
            [
                Text(format_name(name)),
                *(
                    Text(
                        "–"
                        if r is None
                        else _interval(r, "") + (UNSOUND if not r["gate_passed"] else "")
                    )
                    for r in figures
                ),
            ]
        )
    return (
        Table(
            f"omega-{bench.slug}",
            f"Ω_all on {bench.title}",
            ["learner", *orders],
            rows,
            ABOUT_OMEGA,
            mine,
        )
        if rows
        else None
    )


def cell_table(found: SortedResults, bench: Bench, order: str, listed: list[Record]) -> Table:
    """Everything about one ordering, a row for each learner, the best first."""
    there = {r["learner"]: r for r in listed if (r["bench"], r["order"]) == (bench.slug, order)}
    names = rank_learners(found.main(bench), order)
    names += sorted(set(there) - set(names), key=lambda name: -there[name]["mu_mean"])
    omegas = any(r["mean"] is not None for r in there.values())
    rows = []
    for name in names:
        r = there[name]
        ratios = []
        if omegas:
            ratios = [_interval(r, ""), _interval(r, "paper_"), str(r["omega_n"])]
        size = f"{r['memory_bytes'] / 1e6:.2f}" if r["memory_bytes"] else "–"
        cells = [f"{r['final']:.3f}", *ratios, str(r["n"]), f"{r['ms_per_sample']:.1f}", size]
        rows.append([Text(format_name(name)), format_score(r), *map(Text, cells)])
    head = [
        "learner",
        "μ_all",
        "at the end",
        *(["Ω_all", "paper's Ω", "seeds of Ω"] if omegas else []),
        "seeds",
        "ms a sample",
        "memory, MB",
    ]
    ceiling = next((r["ceiling"] for r in there.values() if r["ceiling"] is not None), None)
    told = (
        ""
        if ceiling in (None, 1.0)
        else (
            f" On average {ceiling:.3f} of the test frames had a class that was shown: nobody can "
            "be above that."
        )
    )
    note = (
        "Ordered by how many methods have a lower mean on the seeds both have. Milliseconds are "
        "medians of learning alone, without computing the features, one thread, several runs at "
        "once and at different times: "
        f"differences below a factor of two mean nothing.{told}"
    )
    return Table(
        f"cell-{order}-{bench.slug}",
        f"{order} on {bench.title}",
        head,
        rows,
        note,
        list(there.values()),
    )


def format_score(record: Record | None) -> Text:
    """μ_all and its interval, with the sign of its place."""
    if record is None:
        return Text("–")
    refused = f" {REFUSED}" if record["refused"] else ""
    return Text(_interval(record, "mu_") + SIGNS.get(record["place"], "") + refused, record["best"])


def _interval(record: Record, prefix: str) -> str:
    parts = [record[f"{prefix}{part}"] for part in ("mean", "low", "high")]
    return "–" if parts[0] is None else statistics.interval(*parts)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _held_out(cells: Cells) -> str:
    first = next(iter(next(iter(cells.values())).values()))[0]
    rule = f"{first.split}; " if first.split else ""
    return f"{rule}{first.test_frames:,}, and {first.frames:,} to train"


def format_range(numbers: list[int] | set[int]) -> str:
    """A number, or the range of several.

    >>> format_range([5, 10, 5]), format_range([3])
    ('5–10', '3')
    """
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"


def cell_names(listed: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """(bench, ordering) → data set and ordering, and what else is needed to distinguish benches."""
    main = most_common(r["backbone"] for r in listed)
    benches = {}
    for r in listed:
        other = "" if r["backbone"] == main else f" {r['backbone']}"
        short = f" {r['length']:,} frames" if r["length"] else ""
        benches[r["bench"]] = f"{r['dataset']}{other}{short}"
    often = Counter(benches.values())
    full = {slug: slug if often[name] > 1 else name for slug, name in benches.items()}
    return {(r["bench"], r["order"]): f"{full[r['bench']]} {r['order']}" for r in listed}


def ranks(listed: list[Record]) -> Table:
    """Learners × data sets: the mean rank by μ_all among streaming methods over the orderings."""
    benches = {
        r["bench"]: cell_names(listed)[r["bench"], r["order"]].removesuffix(f" {r['order']}")
        for r in listed
    }
    # places among the methods that ran everywhere: where others ran, too, they would count more
    ranked: dict[tuple[str, str], dict[str, int]] = {}
    for r in listed:
        if r["rank"] is not None:
            ranked.setdefault((r["bench"], r["order"]), {})[r["learner"]] = r["rank"]
    everywhere = set[str]().union(*ranked.values()).intersection(*ranked.values())
    places: dict[str, dict[str, list[int]]] = {}
    for (bench, _), known in ranked.items():
        rivals = everywhere or set(known)
        for name, rank in known.items():
            place = 1 + sum(known[rival] < rank for rival in rivals)
            places.setdefault(name, {}).setdefault(bench, []).append(place)
    means = {
        name: {bench: _mean(mine) for bench, mine in by.items()} for name, by in places.items()
    }
    whole = {name: _mean(list(by.values())) for name, by in means.items()}
    cells_of = {name: sum(map(len, by.values())) for name, by in places.items()}
    order = sorted(means, key=lambda name: (-cells_of[name], whole[name]))
    best = {
        bench: min(by[bench] for by in means.values() if bench in by)
        for bench in benches
        if any(bench in by for by in means.values())
    }
    rows = []
    for name in order:
        cells = [
            Text(f"{by:.1f}", by == best[bench]) if (by := means[name].get(bench)) else Text("–")
            for bench in benches
        ]
        rows.append([Text(name), Text(f"{whole[name]:.1f}"), *cells])
    note = (
        "Rank by μ_all, 1 is the best, among the streaming methods that ran everywhere; its mean "
        "over the orderings of a data set, and the mean of these. The methods that did not run "
        "everywhere come last, with the rank that they would have among the others."
    )
    records = [{"learner": name, "mean": whole[name], **means[name]} for name in order]
    return Table(
        "ranks", "Mean rank by μ_all", ["learner", "mean", *benches.values()], rows, note, records
    )


def competitors(found: SortedResults, bench: Bench) -> list[str]:
    """Competing learners by their mean place over the orderings, the best first."""
    cells = found.main(bench)
    places: dict[str, list[int]] = {}
    for order in orders_of(cells):
        for place, name in enumerate(rank_learners(cells, order), 1):
            places.setdefault(name, []).append(place)
    return sorted(places, key=lambda name: _mean(places[name]))
