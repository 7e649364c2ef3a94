"""Ablations, found in the store: runs that are equal but for one choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from paper.knobs import EMA_LEVELS, KNOBS, Knob, Value
from verse import streams
from verse.reports import statistics
from verse.reports.cells import Bench, Results, SortedResults, format_settings, is_verse
from verse.reports.statistics import Estimate
from verse.reports.tables import Table, Text
from verse.reports.tuning import sort_key

SYMBOLS = {"omega": "Ω_all", "mu": "μ_all"}
Named = TypeVar("Named")
Turned = dict[str, dict[Value, Results]]
"""Ordering → value of the knob → runs."""


@dataclass(frozen=True)
class Ablation:
    """Figures by ordering and value of a knob."""

    knob: Knob
    bench: Bench
    learner: str
    values: list[Value]
    cells: dict[str, dict[Value, Estimate]]  # ordering → value → figure
    tied: dict[str, set[Value]]  # ordering → values whose distance to the best may be chance
    runs: Turned  # what the figures stand on
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
        every = [
            r
            for by in self.runs.values()
            for value, runs in by.items()
            for r in runs
            if self.knob.reference in (None, value)
        ]
        own = [dict(r.run.settings) for r in every]
        fixed = {
            name: value
            for name, value in own[0].items()
            if all(settings.get(name) == value for settings in own)
        }
        said = format_settings(fixed)
        otherwise = f"Otherwise {said}, and defaults." if said else "Otherwise defaults."
        told = ""
        if self.knob.named:
            setting, symbol = self.knob.named
            told = f"{self.knob.reference}: {symbol} = {every[0].settings[setting]:g}. "
        return f"{told}{self.knob.meaning}{otherwise}"

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
                    records.append(
                        {
                            "dataset": self.bench.dataset,
                            "backbone": self.bench.backbone,
                            "learner": self.learner,
                            "order": order,
                            self.knob.name: value,
                            "metric": metric,
                            **e.record,
                        }
                    )
            rows.append(row)
        head = ["ordering", *(str(value) for value in self.values)]
        note = (
            f"{metric}, mean and 95 % interval. Bold: the highest mean of the row; ≈: the paired "
            "interval of the best value's lead over this one, with Holm's correction over the "
            "row, includes zero. "
            f"{self.base}"
        )
        return Table(self.name, self.title, head, rows, note, records)


@dataclass(frozen=True)
class Place:
    """Runs that may be compared when a knob is turned: all but its value is equal."""

    bench: Bench
    learner: str
    base: str


def find(found: SortedResults) -> list[Ablation]:
    """Every knob that was turned, for each data set, backbone and learner."""
    tested = {key: runs for key, runs in found.cells.items() if key.bench.validation is None}
    verses = {key: runs for key, runs in tested.items() if is_verse(key.learner)}
    common = Counter[tuple[Bench, str, str]]()
    for key, runs in verses.items():
        common[key.bench, key.learner, key.settings] += len(runs)
    ablations = []
    for knob in KNOBS:
        places: dict[Place, Turned] = {}
        usual = Counter[Place]()  # the runs of the settings that most runs have: the tuned ones
        for key, runs in verses.items():
            for base in knob.bases(key, verses):
                at = Place(key.bench, key.learner, base)
                orders = places.setdefault(at, {})
                orders.setdefault(key.order, {})[knob.value(key, runs)] = runs
                usual[at] = max(usual[at], common[key.bench, key.learner, key.settings])
        largest: dict[tuple[Bench, str], Place] = {}  # more than one may have been ablated
        for at, turned in places.items():
            known = largest.setdefault((at.bench, at.learner), at)
            if (*_size(turned), usual[at]) > (*_size(places[known]), usual[known]):
                largest[at.bench, at.learner] = at
        ablations += [
            _ablation(knob, at.bench, at.learner, places[at])
            for at in largest.values()
            if max(len(by) for by in places[at].values()) > 1
        ]
    return sorted(ablations, key=lambda a: ([k.name for k in KNOBS].index(a.knob.name), a.name))


def _size(turned: Turned) -> tuple[int, int]:
    """The number of values, then of runs."""
    return (
        max(len(by) for by in turned.values()),
        sum(len(runs) for by in turned.values() for runs in by.values()),
    )


def _ablation(knob: Knob, bench: Bench, learner: str, base: Turned) -> Ablation:
    values = {value for by in base.values() for value in by}
    ordered: list[Value] = [v for v in EMA_LEVELS if v in values]
    ordered = ordered or sorted(values, key=sort_key)
    runs = {order: base[order] for order in streams.names() if len(base.get(order, {})) > 1}
    every = [found for by in runs.values() for found in by.values()]
    measure = "mu" if knob.metric == "mu" else statistics.metric(*every)
    cells: dict[str, dict[Value, Estimate]] = {}
    tied: dict[str, set[Value]] = {}
    for order, by in runs.items():
        cells[order] = {}
        for value, same in on_common_seeds(by).items():
            omega = statistics.omega(same) if measure == "omega" else None
            cells[order][value] = omega or statistics.mu(same)
        best = max(cells[order], key=lambda value: cells[order][value].mean)
        tied[order] = _tied(by, best, measure)
    return Ablation(knob, bench, learner, ordered, cells, tied, runs, measure)


def on_common_seeds(by: Mapping[Named, Results]) -> dict[Named, Results]:
    """The same seeds for all, if there are any: nothing must win by its seeds."""
    common = statistics.common(*by.values()) if by else []
    return {value: [r for r in runs if r.run.seed in common] or runs for value, runs in by.items()}


def _tied(by: dict[Value, Results], best: Value, measure: str) -> set[Value]:
    """Values that the best one does not beat beyond chance, with Holm's correction over them."""
    leads = {
        value: lead
        for value, runs in by.items()
        if value != best and (lead := statistics.difference(by[best], runs, measure))
    }
    beaten = {value for value, lead in statistics.adjust(leads).items() if lead.low > 0}
    return set(by) - beaten - {best}
