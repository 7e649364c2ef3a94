"""Learners with other memory budgets and other settings than in the main tables."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace

from paper.ablations import on_common_seeds
from verse import streams
from verse.reports import statistics
from verse.reports.cells import Bench, CellKey, Conditions, Results, SortedResults, format_settings
from verse.reports.scores import format_name, format_range
from verse.reports.tables import Table, Text


def budgets(found: SortedResults, bench: Bench) -> Table | None:
    """Learners × capacities in each ordering, at each learner's main settings."""
    main = found.main(bench)
    conditions = found.conditions(bench)
    settings = {name: _settings_of(found, bench, by) for name, by in main.items()}
    cells: dict[tuple[str, str], dict[str, Results]] = defaultdict(dict)
    for key, runs in found.cells.items():
        same = replace(key.conditions, capacity=conditions.capacity) == conditions
        if key.bench == bench and same and key.settings == settings.get(key.learner):
            cells[key.learner, key.order][key.conditions.capacity] = runs
    places = [(name, order) for order in streams.names() for name in main]
    several = {
        place: on_common_seeds(cells[place]) for place in places if len(cells.get(place, {})) > 1
    }
    if not several:
        return None
    sizes: dict[str, set[int]] = defaultdict(set)
    for by in several.values():
        for capacity, runs in by.items():
            sizes[capacity].add(runs[0].capacity)
    capacities = sorted(sizes, key=lambda capacity: max(sizes[capacity]))
    rows, records = [], []
    for (learner, order), by in several.items():
        row = [Text(f"{order}, {format_name(learner)}")]
        for capacity in capacities:
            e = None if capacity not in by else statistics.mu(by[capacity])
            row.append(Text("–" if e is None else str(e)))
            if e is not None:
                records.append(
                    {
                        "dataset": bench.dataset,
                        "learner": learner,
                        "order": order,
                        "capacity": capacity,
                        "samples": by[capacity][0].capacity,
                        "bytes": by[capacity][0].memory_bytes,
                        **e.record,
                    }
                )
        rows.append(row)
    held = {c: format_range(sizes[c] - {0} or {0}) for c in capacities}  # some store no samples
    head = ["ordering, learner", *(f"{c} ({held[c]} samples)" for c in capacities)]
    note = (
        "μ_all, mean and 95 % interval; in a row on the seeds that all its figures have. Methods "
        "that store less of a sample hold more samples in as many bytes."
    )
    return Table(
        f"budgets-{bench.slug}", f"Memory budgets on {bench.title}", head, rows, note, records
    )


def _settings_of(found: SortedResults, bench: Bench, by: dict[str, Results]) -> str:
    first = next(iter(by.values()))
    return next(k.settings for k, runs in found.cells.items() if runs is first and k.bench == bench)


def variants(found: SortedResults, bench: Bench) -> Table | None:
    """Learners that ran with several settings or conditions: all of them, main ones first."""
    main, conditions = found.main(bench), found.conditions(bench)
    rows, records = [], []
    orders = [
        o for o in streams.names() if any((k.bench, k.order) == (bench, o) for k in found.cells)
    ]
    for name, by in main.items():
        settings = _settings_of(found, bench, by)
        groups: dict[str, dict[str, Results]] = defaultdict(dict)
        for key, runs in found.cells.items():
            same = key.conditions.length == conditions.length  # others have a page of their own
            if key.bench == bench and key.learner == name and same:
                groups[_changes(key, conditions, settings)][key.order] = runs
        if len(groups) < 2:
            continue
        by_order = {
            order: on_common_seeds({c: ran[order] for c, ran in groups.items() if order in ran})
            for order in orders
        }
        for change in sorted(groups):
            row = [Text(f"{name}: {change or 'as in the main table'}")]
            for order in orders:
                runs = by_order[order].get(change, [])
                e = statistics.mu(runs) if runs else None
                row.append(Text("–" if e is None else str(e)))
                if e is not None:
                    records.append(
                        {
                            "dataset": bench.dataset,
                            "learner": name,
                            "order": order,
                            "change": change,
                            **e.record,
                        }
                    )
            rows.append(row)
    if not rows:
        return None
    note = (
        "μ_all, mean and 95 % interval; in an ordering on the seeds that all rows of a learner "
        "have."
    )
    return Table(
        f"variants-{bench.slug}",
        f"Other settings on {bench.title}",
        ["learner: change", *orders],
        rows,
        note,
        records,
    )


def _changes(key: CellKey, conditions: Conditions, settings: str) -> str:
    """What differs from the main table, in words."""
    base, mine = json.loads(settings), key.values
    changed = {n: v for n, v in mine.items() if base.get(n, v) != v or n not in base}
    parts = [format_settings(changed)] if changed else []
    for field, value in vars(key.conditions).items():
        if value != vars(conditions)[field]:
            parts.append(f"{field.replace('own_memory', 'memory')} = {value}")
    return ", ".join(parts)
