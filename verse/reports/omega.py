"""The main tables: Ω_all and μ_all of every learner in every cell, and who is first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from verse.reports import statistics
from verse.reports.cells import (
    Bench,
    Cells,
    Sorted,
    competes,
    fine_tunes,
    is_verse,
    orders_of,
    ranked,
    usual,
)
from verse.reports.statistics import ENOUGH, Estimate
from verse.reports.tables import Table, Text

MARK = "ᶠ"
SIGNS = {"tied": "≈", "undecided": "?"}
UNSOUND = "†"
BOLD = (
    "Bold: the best streaming method, which here means every method that answers without "
    "fine-tuning first. It is first where the paired interval of its lead over every rival "
    "excludes zero; otherwise ≈ marks it and those that are not told apart from it, which with "
    f"{ENOUGH} seeds says little. ?: fewer than {ENOUGH} seeds in common with a rival. {MARK}: "
    "fine-tunes on its memory before it answers, and does not compete. "
    f"{UNSOUND}: Offline failed its gate at a test event of a seed counted here, so Ω_all is too "
    "high there."
)
RULE = (
    "Mean and 95 % interval over seeds and test videos; two methods are compared on the seeds "
    f"that both have. {BOLD} μ_all is the mean accuracy, without division by Offline."
)


def standing(cells: Cells, order: str) -> dict[str, str]:
    """Competing learner → "first", "tied", "undecided" or ""; nobody without a rival."""
    names = ranked(cells, order)
    if len(names) < 2:
        return dict.fromkeys(names, "alone")
    best = names[0]
    measure = statistics.metric(*(cells[name][order] for name in names))
    place = dict.fromkeys(names, "")
    for name in names[1:]:
        lead = statistics.difference(cells[best][order], cells[name][order], measure)
        if lead is None or not lead.enough:
            place[name] = "undecided"
        elif not lead.low > 0:
            place[name] = "tied"
    rivals = {place[name] for name in names[1:]}
    worst = next((word for word in ("undecided", "tied") if word in rivals), "first")
    return place | {best: worst}


def records(found: Sorted) -> list[dict[str, Any]]:
    """One record per cell of the main tables, for JSON and CSV."""
    listed = []
    for bench in found.benches:
        cells, conditions = found.main(bench), found.conditions(bench)
        for order in orders_of(cells):
            place = standing(cells, order)
            best = next(iter(place), None)
            for name, by in cells.items():
                if order not in by:
                    continue
                runs = by[order]
                omega, mu = statistics.omega(runs), statistics.mu(runs)
                bounds = [bound for r in runs for bound in r.offline]
                listed.append({
                    "dataset": bench.dataset,
                    "order": order,
                    "learner": name,
                    "backbone": bench.backbone,
                    **_parts("", omega),
                    "n": mu.n,
                    **_parts("mu_", mu),
                    "final": sum(r.alpha[-1] for r in runs) / len(runs),
                    "offline": sum(b.accuracy for b in bounds) / len(bounds) if bounds else None,
                    "gate_passed": all(b.sound for b in bounds) if bounds else None,
                    "place": place.get(name, "does not compete"),
                    "best": name == best and len(place) > 1,
                    "ms_per_sample": 1000 * median(r.learn_seconds / max(r.learned, 1)
                                                   for r in runs),
                    "memory_samples": int(median(r.capacity for r in runs)),
                    "memory_bytes": int(median(r.memory_bytes for r in runs)),
                    "refused": sum(r.refused for r in runs),
                    "capacity": conditions.capacity,
                    "thin": bench.thin,
                    "holdout": bench.holdout,
                    "bench": bench.slug,
                    "settings": dict(runs[0].run.settings),
                })  # fmt: skip
    return listed


def _parts(prefix: str, estimate: Estimate | None) -> dict[str, float | None]:
    names = ("mean", "low", "high")
    return {f"{prefix}{n}": None if estimate is None else getattr(estimate, n) for n in names}


def shown(learner: str) -> str:
    """A learner's name, marked if it does not compete."""
    return f"{learner}{MARK}" if fine_tunes(learner) else learner


def table(found: Sorted, bench: Bench, listed: list[dict[str, Any]]) -> Table:
    """Learners × orderings of one data set and backbone, Ω_all and μ_all."""
    cells = found.main(bench)
    orders = orders_of(cells)
    mine = [r for r in listed if r["bench"] == bench.slug]
    by = {(r["learner"], r["order"]): r for r in mine}
    head = ["learner"]
    for order in orders:
        head += [f"{order} Ω_all", f"{order} μ_all"]
    rows = []
    for name in cells:
        row = [Text(shown(name))]
        for order in orders:
            record = by.get((name, order))
            row += [figure(record), figure(record, "mu_")]
        rows.append([*row, Text(counted([r["n"] for r in mine if r["learner"] == name]))])
    rows.append(_offline_row(cells, orders))
    conditions = found.conditions(bench)
    about = f"Memory: {conditions.capacity}. Split: {_split(cells)}."
    return Table(f"omega-{bench.slug}", f"Ω_all on {bench.title}", [*head, "seeds"], rows,
                 f"{about} {RULE}", mine)  # fmt: skip


def cell_table(found: Sorted, bench: Bench, order: str, listed: list[dict[str, Any]]) -> Table:
    """Everything about one ordering, a row for each learner, the best first."""
    there = {r["learner"]: r for r in listed if (r["bench"], r["order"]) == (bench.slug, order)}
    names = ranked(found.main(bench), order)
    names += sorted(set(there) - set(names), key=lambda name: -there[name]["mu_mean"])
    rows = []
    for name in names:
        r = there[name]
        memory = r["memory_samples"], r["memory_bytes"]
        rows.append([
            Text(shown(name)), figure(r), figure(r, "mu_"), Text(f"{r['final']:.3f}"),
            Text(str(r["n"])), Text(f"{r['ms_per_sample']:.1f}"),
            *(Text(f"{value:,}" if value else "–") for value in memory),
        ])  # fmt: skip
    head = ["learner", "Ω_all", "μ_all", "α at the end", "seeds", "ms a sample",
            "memory, samples", "memory, bytes"]  # fmt: skip
    note = (
        "Ordered by the number of rivals beaten on the seeds both have. Milliseconds are medians "
        "of learning alone, without G, one thread, several runs at once and at different times: "
        "differences below a factor of two mean nothing."
    )
    return Table(f"cell-{order}-{bench.slug}", f"{order} on {bench.title}", head, rows, note,
                 list(there.values()))  # fmt: skip


def figure(record: dict[str, Any] | None, prefix: str = "") -> Text:
    """Mean and interval, with the signs behind Ω_all."""
    if record is None or record[f"{prefix}mean"] is None:
        return Text("–")
    text = statistics.interval(*(record[f"{prefix}{part}"] for part in ("mean", "low", "high")))
    if prefix:
        return Text(text)
    return Text(text + _signs(record), record["best"])


def _signs(record: dict[str, Any]) -> str:
    unsound = UNSOUND if record["gate_passed"] is False else ""
    return SIGNS.get(record["place"], "") + unsound


def _offline_row(cells: Cells, orders: list[str]) -> list[Text]:
    row = [Text("Offline (bound)")]
    seeds = set()
    for order in orders:
        bounds = {r.run.seed: r.offline_alpha for by in cells.values() for r in by.get(order, [])}
        known = {seed: sum(b) / len(b) for seed, b in bounds.items() if b}
        seeds.add(len(known))
        mean = f"{sum(known.values()) / len(known):.3f}" if known else "–"
        row += [Text("1" if known else "–"), Text(mean)]
    return [*row, Text(counted(seeds))]


def _split(cells: Cells) -> str:
    first = next(iter(next(iter(cells.values())).values()))[0]
    return f"{first.split}; {first.frames:,} training and {first.test_frames:,} test frames"


def counted(numbers: list[int] | set[int]) -> str:
    """A number, or the range of several.

    >>> counted([5, 10, 5]), counted([3])
    ('5–10', '3')
    """
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low}–{high}"


def cell_names(listed: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """(bench, ordering) → data set and ordering, with what else it takes to tell benches apart."""
    main = usual(r["backbone"] for r in listed)
    benches = {}
    for r in listed:
        other = "" if r["backbone"] == main else f" {r['backbone']}"
        benches[r["bench"]] = f"{r['dataset']}{other}"
    often = Counter(benches.values())
    full = {slug: slug if often[name] > 1 else name for slug, name in benches.items()}
    return {(r["bench"], r["order"]): f"{full[r['bench']]} {r['order']}" for r in listed}


def overview(listed: list[dict[str, Any]]) -> Table:
    """Learners × (data set, ordering), Ω_all alone, of all data sets and backbones."""
    columns = cell_names(listed)
    main = usual(r["backbone"] for r in listed)
    head = ["learner", *columns.values(), "seeds"]
    by = {(r["learner"], r["bench"], r["order"]): r for r in listed}
    rows = []
    names = dict.fromkeys(r["learner"] for r in listed)
    for name in sorted(names, key=lambda name: not is_verse(name)):  # not every one is in all cells
        row = [Text(shown(name))]
        for column in columns:
            record = by.get((name, *column))
            if record is None or record["mean"] is None:
                row.append(Text("–"))
            else:
                row.append(Text(f"{record['mean']:.3f}{_signs(record)}", record["best"]))
        rows.append([*row, Text(counted([r["n"] for r in listed if r["learner"] == name]))])
    note = (
        "Means over seeds; their intervals are in the tables below. Seeds are not equally hard: "
        "means over different numbers of them decide nothing, marks are set on common ones. The "
        f"backbone is {main} where none is named. {BOLD}"
    )
    return Table("omega", "Ω_all of all methods", head, rows, note, listed)


def competitors(found: Sorted, bench: Bench) -> list[str]:
    """Competing learners by their mean over all orderings, the best first."""
    cells = found.main(bench)
    mean = {
        name: sum(statistics.mu(runs).mean for runs in by.values()) / len(by)
        for name, by in cells.items()
        if competes(name)
    }
    return sorted(mean, key=lambda name: -mean[name])
