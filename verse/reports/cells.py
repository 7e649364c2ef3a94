"""Finished runs sorted for comparison: by data set and backbone, learner, settings, ordering.

Everything is found by what a run records, never by file names. Runs on validation videos are
tuning and never meet those on test videos; runs in real time (``fps``) are left out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from verse import learners, streams
from verse.experiments.result import Result
from verse.reports import statistics

Results = list[Result]


@dataclass(frozen=True)
class Bench:
    """What a comparison holds fixed."""

    dataset: str
    options: str
    holdout: str | None
    thin: int
    validation: str | None
    backbone: str

    @property
    def title(self) -> str:
        """For people: what of the data set, and the backbone."""
        thin = "" if self.thin == 1 else f", every {_nth(self.thin)} frame"
        return f"{self.dataset}{thin}, {self.backbone}"

    @property
    def slug(self) -> str:
        """For file names."""
        thin = "" if self.thin == 1 else f"-thin{self.thin}"
        rest = "" if self.validation is None else "-validation"
        return f"{self.dataset}{thin}-{self.backbone}{rest}".replace("/", "-").replace(":", "-")


@dataclass(frozen=True)
class Conditions:
    """What should be equal for all learners of a table, but may be varied in an ablation."""

    capacity: str
    at: str
    batchnorm: str
    precision: str
    features: str
    every: int
    steps: int
    own_memory: str
    """The memory's rule where it is not the ordering's default."""


@dataclass(frozen=True)
class Key:
    """One cell: a learner with its settings in one ordering."""

    bench: Bench
    conditions: Conditions
    learner: str
    settings: str
    order: str

    @property
    def values(self) -> dict[str, Any]:
        """The learner's settings, defaults included."""
        found: dict[str, Any] = json.loads(self.settings)
        return found


class Sorted:
    """All cells of a store, and the ones that its main tables show."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.cells: dict[Key, Results] = defaultdict(list)
        self.left_out = 0
        for result in results:
            if result.run.fps is not None:
                self.left_out += 1
            else:
                self.cells[key(result)].append(result)
        for runs in self.cells.values():
            # two records may mean the same run, one of them naming a default
            runs[:] = {r.run.seed: r for r in sorted(runs, key=_by_seed, reverse=True)}.values()
            runs.reverse()

    @cached_property
    def benches(self) -> list[Bench]:
        """Those on test videos, in the order of their names."""
        return sorted({k.bench for k in self.cells if k.bench.validation is None}, key=_by_name)

    @cached_property
    def tuning(self) -> list[Bench]:
        """Those on validation videos."""
        return sorted({k.bench for k in self.cells if k.bench.validation is not None}, key=_by_name)

    def conditions(self, bench: Bench) -> Conditions:
        """Those under which most learners ran, then most runs."""
        names: dict[Conditions, set[str]] = defaultdict(set)
        runs: Counter[Conditions] = Counter()
        for k, found in self.cells.items():
            if k.bench == bench and not k.conditions.own_memory:
                names[k.conditions].add(k.learner)
                runs[k.conditions] += len(found)
        if not names:  # only ablations of the memory's rule
            return next(k.conditions for k in self.cells if k.bench == bench)
        return max(names, key=lambda c: (len(names[c]), runs[c], repr(c)))

    def main(self, bench: Bench) -> dict[str, dict[str, Results]]:
        """Learner → ordering → runs, under the main conditions and each learner's main settings."""
        conditions = self.conditions(bench)
        found: dict[str, dict[str, dict[str, Results]]] = defaultdict(lambda: defaultdict(dict))
        for k, runs in self.cells.items():
            if k.bench == bench and k.conditions == conditions:
                found[k.learner][k.settings][k.order] = runs
        chosen = {name: max(by.values(), key=_weight) for name, by in found.items()}
        known = {name: i for i, name in enumerate(learners.names())}

        def place(name: str) -> tuple[bool, int, str]:  # VERSE and its variants come first
            return (not name.startswith("verse"), known.get(name, len(known)), name)

        return {name: chosen[name] for name in sorted(chosen, key=place)}


def _weight(orders: dict[str, Results]) -> tuple[int, int, str]:
    """Main settings: those most runs have, then those that say least, then any fixed rule."""
    runs = [run for found in orders.values() for run in found]
    return (len(runs), -len(runs[0].run.settings), json.dumps(dict(runs[0].run.settings)))


def key(result: Result) -> Key:
    """The cell of a result."""
    run = result.run
    default = replace(run, memory="").memory
    settings = {name: value for name, value in result.settings.items() if name != "seed"}
    return Key(
        Bench(
            short(run.dataset), json.dumps(dict(run.options), sort_keys=True), run.holdout,
            run.thin, run.validation, run.backbone,
        ),
        Conditions(
            run.capacity, result.circumstances.get("at", run.at or ""), run.batchnorm,
            run.precision, run.features, run.every, run.steps,
            "" if run.memory == default else run.memory,
        ),
        run.learner,
        json.dumps(settings, sort_keys=True),
        run.order,
    )  # fmt: skip


def short(dataset: str) -> str:
    """A data set's name without its place.

    >>> short("folder:pictures/eth80"), short("core50")
    ('eth80', 'core50')
    """
    return dataset.rstrip("/").rpartition(":")[2].rpartition("/")[2]


def orders_of(cells: dict[str, dict[str, Results]]) -> list[str]:
    """The orderings that occur, as the paper's tables order them."""
    return [order for order in streams.names() if any(order in by for by in cells.values())]


def fine_tunes(learner: str) -> bool:
    """It trains on its memory before it answers, so it is no streaming method."""
    return learners.get(learner).traits.fine_tuning


def competes(learner: str) -> bool:
    """For the first place: everybody who learns in the stream."""
    return learner != "offline" and not fine_tunes(learner)


def ranked(cells: dict[str, dict[str, Results]], order: str) -> list[str]:
    """Competing learners of an ordering, the best mean first."""
    there = [name for name, by in cells.items() if order in by and competes(name)]
    if any(result.offline == () for name in there for result in cells[name][order]):
        return sorted(there, key=lambda name: -statistics.mu(cells[name][order]).mean)
    mean = {name: _mean(statistics.scores(cells[name][order])) for name in there}
    return sorted(there, key=lambda name: -mean[name])


def _by_seed(result: Result) -> tuple[int, int]:
    return (result.run.seed, len(result.run.settings))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _nth(n: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(n, f"{n}th")


def _by_name(bench: Bench) -> tuple[str, str]:
    return (bench.slug, repr(bench))
