"""Ablations, found in the store: runs that are equal but for one choice."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from verse import streams
from verse.experiments.capacity import budget
from verse.reports import statistics
from verse.reports.cells import Bench, Key, Results, Sorted, is_verse, words
from verse.reports.omega import counted, shown
from verse.reports.statistics import Estimate
from verse.reports.tables import Table, Text

SYMBOLS = {"omega": "Ω_all", "mu": "μ_all"}
EMA_LEVELS = ("no distillation", "teacher θ", "hard copy", "EMA")


@dataclass(frozen=True)
class Knob:
    """One choice: its value in a cell, and what stays equal when it is turned."""

    name: str
    title: str
    value: Callable[[Key, Results], Any]
    bases: Callable[[Key, Collection[Key]], list[str]]  # the comparisons it belongs to
    metric: str  # "omega" or "mu", as in the paper's figure
    bars: bool = False
    reference: str | None = None
    """The value whose settings the others start from, where it takes several settings to turn."""
    meaning: str = ""
    """What the other values change."""


@dataclass(frozen=True)
class Ablation:
    """Figures by ordering and value of a knob."""

    knob: Knob
    bench: Bench
    learner: str
    values: list[Any]
    cells: dict[str, dict[Any, Estimate]]  # ordering → value → figure
    tied: dict[str, set[Any]]  # ordering → values whose distance to the best may be chance
    runs: dict[str, dict[Any, Results]]  # what the figures stand on
    measure: str  # "omega" or "mu"

    @property
    def name(self) -> str:
        """For files."""
        return f"ablation-{self.knob.name}-{self.learner}-{self.bench.slug}"

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.knob.title}: {self.learner} on {self.bench.title}"

    @property
    def symbol(self) -> str:
        """Of the measure."""
        return SYMBOLS[self.measure]

    @property
    def base(self) -> str:
        """The settings that are no defaults and do not change, in words."""
        every = [r for by in self.runs.values() for value, runs in by.items() for r in runs
                 if self.knob.reference in (None, value)]  # fmt: skip
        own = [dict(r.run.settings) for r in every]
        fixed = {name: value for name, value in own[0].items()
                 if all(settings.get(name) == value for settings in own)}  # fmt: skip
        said = words(fixed)
        otherwise = f"Otherwise {said}, and defaults." if said else "Otherwise defaults."
        return f"{self.knob.meaning}{otherwise}"

    def table(self) -> Table:
        """Orderings × values."""
        metric = self.symbol
        rows, records = [], []
        for order, by in self.cells.items():
            best = max(by, key=lambda value: by[value].mean)
            row = [Text(order)]
            for value in self.values:
                e = by.get(value)
                sign = "≈" if value in self.tied[order] else ""
                text = "–" if e is None else f"{e}{sign}"
                row.append(Text(text, value == best))
                if e is not None:
                    records.append({
                        "dataset": self.bench.dataset, "backbone": self.bench.backbone,
                        "learner": self.learner, "order": order, self.knob.name: value,
                        "metric": metric, **e.record,
                    })  # fmt: skip
            rows.append(row)
        head = ["ordering", *(str(value) for value in self.values)]
        note = (
            f"{metric}, mean and 95 % interval. Bold: the highest mean of the row; ≈: the paired "
            "interval of the best value's lead over this one includes zero. "
            f"{self.base}"
        )
        return Table(self.name, self.title, head, rows, note, records)


def find(found: Sorted) -> list[Ablation]:
    """Every knob that was turned, for each data set, backbone and learner."""
    ablations = []
    for knob in KNOBS:
        groups: dict[tuple[Bench, str], dict[str, dict[str, dict[Any, Results]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(dict))
        )
        tested = {key: runs for key, runs in found.cells.items() if key.bench.validation is None}
        verses = {key: runs for key, runs in tested.items() if is_verse(key.learner)}
        for key, runs in verses.items():
            for base in knob.bases(key, verses):
                groups[key.bench, key.learner][base][key.order][knob.value(key, runs)] = runs
        for (bench, learner), bases in groups.items():
            main = max(bases.values(), key=_size)  # more than one may have been ablated
            if max(len(by) for by in main.values()) > 1:
                ablations.append(_ablation(knob, bench, learner, main))
    return sorted(ablations, key=lambda a: ([k.name for k in KNOBS].index(a.knob.name), a.name))


def _size(base: dict[str, dict[Any, Results]]) -> tuple[int, int]:
    """The number of values, then of runs."""
    return (max(len(by) for by in base.values()),
            sum(len(runs) for by in base.values() for runs in by.values()))  # fmt: skip


def _ablation(
    knob: Knob, bench: Bench, learner: str, base: dict[str, dict[Any, Results]]
) -> Ablation:
    values = {value for by in base.values() for value in by}
    ordered = [v for v in EMA_LEVELS if v in values] or sorted(values, key=place)
    runs = {order: base[order] for order in streams.names() if len(base.get(order, {})) > 1}
    every = [found for by in runs.values() for found in by.values()]
    measure = "mu" if knob.metric == "mu" else statistics.metric(*every)
    cells: dict[str, dict[Any, Estimate]] = {}
    tied: dict[str, set[Any]] = {}
    for order, by in runs.items():
        cells[order] = {}
        for value, same in _on_common_seeds(by).items():
            omega = statistics.omega(same) if measure == "omega" else None
            cells[order][value] = omega or statistics.mu(same)
        best = max(cells[order], key=lambda value: cells[order][value].mean)
        tied[order] = _tied(by, best, measure)
    return Ablation(knob, bench, learner, ordered, cells, tied, runs, measure)


def _on_common_seeds(by: Mapping[Any, Results]) -> dict[Any, Results]:
    """The same seeds for all, if there are any: nothing must win by its seeds."""
    common = statistics.common(*by.values()) if by else []
    return {value: [r for r in runs if r.run.seed in common] or runs
            for value, runs in by.items()}  # fmt: skip


def _tied(by: dict[Any, Results], best: Any, measure: str) -> set[Any]:
    """Values that the best one does not beat beyond chance."""
    leads = {
        value: statistics.difference(by[best], runs, measure)
        for value, runs in by.items()
        if value != best
    }
    return {value for value, lead in leads.items() if lead is None or not lead.low > 0}


def place(value: Any) -> tuple[int, Any]:
    """To put values in order: numbers, then words."""
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def _base(key: Key, *names: str) -> str:
    """A cell without its ordering and without these settings."""
    left = {name: value for name, value in key.values.items() if name not in names}
    return repr(replace(key, settings=json.dumps(left, sort_keys=True), order=""))


def _weight(key: Key, _: Collection[Key]) -> list[str]:
    return [_base(key, "lam")] if "lam" in key.values else []


def _rate(key: Key, _: Collection[Key]) -> list[str]:
    """Where Φ is a copy of θ, r tells kinds of semantic memory apart: the knob ``ema``."""
    return [_base(key, "r")] if "r" in key.values and key.values.get("gamma") != 0 else []


def _capacity(key: Key, _: Collection[Key]) -> list[str]:
    """A fixed number of samples only: a budget a class grows with the stream."""
    if "capacity" not in budget(key.conditions.capacity, 1):
        return []
    return [_base(replace(key, conditions=replace(key.conditions, capacity="")))]


def _policy(key: Key, _: Collection[Key]) -> list[str]:
    return [_base(replace(key, conditions=replace(key.conditions, own_memory="")))]


def _ema(key: Key, everyone: Collection[Key]) -> list[str]:
    """The moving averages whose λ (and r, but for the teacher θ) this cell shares."""
    if not {"lam", "gamma", "r"} <= set(key.values):
        return []
    level, rest = ema_level(key), _base(key, "lam", "gamma", "r")
    found = []
    for other in everyone:
        if not {"lam", "gamma", "r"} <= set(other.values) or ema_level(other) != EMA_LEVELS[3]:
            continue
        same_lam = level == EMA_LEVELS[0] or other.values["lam"] == key.values["lam"]
        same_r = level in EMA_LEVELS[:2] or other.values["r"] == key.values["r"]
        same_gamma = level != EMA_LEVELS[3] or other.values["gamma"] == key.values["gamma"]
        if same_lam and same_r and same_gamma and _base(other, "lam", "gamma", "r") == rest:
            found.append(_base(other))
    return list(dict.fromkeys(found))


def ema_level(key: Key) -> str:
    """Which kind of teacher the settings mean."""
    values = key.values
    if values["lam"] == 0:
        return EMA_LEVELS[0]
    if values["gamma"] == 0:
        return EMA_LEVELS[1] if values["r"] == 1 else EMA_LEVELS[2]
    return EMA_LEVELS[3]


KNOBS = (
    Knob("capacity", "Capacity of the memory (samples)", lambda _, runs: runs[0].capacity,
         _capacity, "omega"),
    Knob("lam", "Weight λ of the distillation", lambda key, _: key.values["lam"], _weight, "omega"),
    Knob("r", "Acceptance rate r", lambda key, _: key.values["r"], _rate, "omega"),
    Knob("ema", "Semantic memory", lambda key, _: ema_level(key), _ema, "mu", bars=True,
         reference=EMA_LEVELS[3], meaning="Hard copy: γ = 0; teacher θ: γ = 0 and r = 1; no "
         "distillation: λ = 0. "),
    Knob("policy", "Replacement policy", lambda _, runs: runs[0].run.memory, _policy, "mu",
         bars=True),
)  # fmt: skip


def budgets(found: Sorted, bench: Bench) -> Table | None:
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
    several = {place: _on_common_seeds(cells[place]) for place in places
               if len(cells.get(place, {})) > 1}  # fmt: skip
    if not several:
        return None
    sizes: dict[str, set[int]] = defaultdict(set)
    for by in several.values():
        for capacity, runs in by.items():
            sizes[capacity].add(runs[0].capacity)
    capacities = sorted(sizes, key=lambda capacity: max(sizes[capacity]))
    rows, records = [], []
    for (learner, order), by in several.items():
        row = [Text(f"{order}, {shown(learner)}")]
        for capacity in capacities:
            e = None if capacity not in by else statistics.omega(by[capacity])
            row.append(Text("–" if e is None else str(e)))
            if e is not None:
                records.append({"dataset": bench.dataset, "learner": learner, "order": order,
                                "capacity": capacity, "samples": by[capacity][0].capacity,
                                "bytes": by[capacity][0].memory_bytes, **e.record})  # fmt: skip
        rows.append(row)
    held = {c: counted(sizes[c] - {0} or {0}) for c in capacities}  # some store no samples
    head = ["ordering, learner", *(f"{c} ({held[c]} samples)" for c in capacities)]
    note = (
        "Ω_all, mean and 95 % interval; in a row on the seeds that all its figures have. Methods "
        "that store less of a sample hold more samples in as many bytes."
    )
    return Table(f"budgets-{bench.slug}", f"Memory budgets on {bench.title}", head, rows, note,
                 records)  # fmt: skip


def _settings_of(found: Sorted, bench: Bench, by: dict[str, Results]) -> str:
    first = next(iter(by.values()))
    return next(k.settings for k, runs in found.cells.items() if runs is first and k.bench == bench)


def variants(found: Sorted, bench: Bench) -> Table | None:
    """Learners that ran with several settings or conditions: all of them, main ones first."""
    main, conditions = found.main(bench), found.conditions(bench)
    rows, records = [], []
    orders = [o for o in streams.names()
              if any((k.bench, k.order) == (bench, o) for k in found.cells)]  # fmt: skip
    for name, by in main.items():
        settings = _settings_of(found, bench, by)
        groups: dict[str, dict[str, Results]] = defaultdict(dict)
        for key, runs in found.cells.items():
            if key.bench == bench and key.learner == name:
                groups[_changes(key, conditions, settings)][key.order] = runs
        if len(groups) < 2:
            continue
        by_order = {
            order: _on_common_seeds({c: ran[order] for c, ran in groups.items() if order in ran})
            for order in orders
        }
        for change in sorted(groups):
            row = [Text(f"{name}: {change or 'as in the main table'}")]
            for order in orders:
                runs = by_order[order].get(change, [])
                e = (statistics.omega(runs) or statistics.mu(runs)) if runs else None
                row.append(Text("–" if e is None else str(e)))
                if e is not None:
                    records.append({"dataset": bench.dataset, "learner": name, "order": order,
                                    "change": change, **e.record})  # fmt: skip
            rows.append(row)
    if not rows:
        return None
    note = (
        "Ω_all (μ_all without Offline), mean and 95 % interval; in an ordering on the seeds that "
        "all rows of a learner have."
    )
    return Table(f"variants-{bench.slug}", f"Other settings on {bench.title}",
                 ["learner: change", *orders], rows, note, records)  # fmt: skip


def _changes(key: Key, conditions: Any, settings: str) -> str:
    """What differs from the main table, in words."""
    base, mine = json.loads(settings), key.values
    changed = {n: v for n, v in mine.items() if base.get(n, v) != v or n not in base}
    parts = [words(changed)] if changed else []
    for field, value in vars(key.conditions).items():
        if value != vars(conditions)[field]:
            parts.append(f"{field.replace('own_memory', 'memory')} = {value}")
    return ", ".join(parts)
