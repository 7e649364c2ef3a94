"""Finished runs sorted for comparison: by data set and backbone, learner, settings, ordering.

Everything is found by what a run records, never by file names. Runs are pooled only if they differ
in nothing but the seed: not those of other frames (``thin``, another copy of the data), another
memory budget or another network. Runs on validation videos are tuning and never meet those on test
videos; runs in real time (``fps``) are left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from verse import learners, streams
from verse.experiments.result import Result
from verse.reports.references import share_references

Results = list[Result]
Cells = dict[str, dict[str, Results]]
"""Learner → ordering → runs."""


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
        """For file names and links.

        >>> Bench("eth80", "{}", None, 1, None, "timm:vit_tiny?size=128").slug
        'eth80-timm-vit_tiny-size-128'
        """
        thin = "" if self.thin == 1 else f"-thin{self.thin}"
        rest = "" if self.validation is None else "-validation"
        if self.options != "{}" or self.holdout not in (None, "last:3"):
            rest += f"-{hashlib.sha256(repr(self).encode()).hexdigest()[:4]}"
        return re.sub(r"[^\w.-]", "-", f"{self.dataset}{thin}-{self.backbone}{rest}")


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
    length: int
    """Frames of the stream where it was shortened; 0: all."""
    own_memory: str
    """The memory's rule where it is not the ordering's default."""
    weights: str
    data: str
    """The start of the data set's fingerprint: another copy may hold other frames."""


@dataclass(frozen=True)
class CellKey:
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


class SortedResults:
    """All cells of a store, and the ones that its main tables show."""

    def __init__(self, results: Iterable[Result]) -> None:
        self.cells: dict[CellKey, Results] = defaultdict(list)
        self.ids: list[str] = []
        self.left_out = 0
        self._main: dict[Bench, Cells] = {}
        for result in results:
            self.ids.append(result.id)
            if result.run.fps is not None:
                self.left_out += 1
            else:
                self.cells[cell_key(result)].append(result)
        for runs in self.cells.values():
            # two records may mean the same run: one names a default, or has no Offline
            kept = {r.run.seed: r for r in sorted(runs, key=_preference, reverse=True)}
            runs[:] = sorted(kept.values(), key=lambda r: r.run.seed)
        lent = iter(share_references(self.runs))
        for runs in self.cells.values():
            runs[:] = [next(lent) for _ in runs]

    @property
    def runs(self) -> Results:
        """Those of all cells."""
        return [run for runs in self.cells.values() for run in runs]

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

    def length(self, bench: Bench) -> int:
        """Frames to which the streams of its tables are shortened; 0 if they are whole."""
        return self.conditions(bench).length

    def title(self, bench: Bench) -> str:
        """For people: data set, backbone, and how long shortened streams are."""
        length = self.length(bench)
        return f"{bench.title}, {length:,} frames" if length else bench.title

    def main(self, bench: Bench) -> Cells:
        """The cells under the main conditions and each learner's main settings."""
        if bench not in self._main:
            self._main[bench] = self._find(bench)
        return self._main[bench]

    def _find(self, bench: Bench) -> Cells:
        conditions = self.conditions(bench)
        found: dict[str, dict[str, dict[str, Results]]] = defaultdict(lambda: defaultdict(dict))
        for k, runs in self.cells.items():
            if k.bench == bench and k.conditions == conditions:
                found[k.learner][k.settings][k.order] = runs
        chosen = {name: max(by.values(), key=_weight) for name, by in found.items()}
        known = {name: i for i, name in enumerate(learners.names())}

        def place(name: str) -> tuple[bool, int, str]:  # VERSE and its variants come first
            return (not is_verse(name), known.get(name, len(known)), name)

        return {name: chosen[name] for name in sorted(chosen, key=place)}


def _weight(orders: dict[str, Results]) -> tuple[int, int, str]:
    """Main settings: those most runs have, then those that say least, then any fixed rule."""
    runs = [run for found in orders.values() for run in found]
    return (len(runs), -len(runs[0].run.settings), json.dumps(dict(runs[0].run.settings)))


def bench_of(result: Result) -> Bench:
    """What a run shares with those it can be compared with."""
    run = result.run
    options = json.dumps(dict(run.options), sort_keys=True)
    return Bench(
        short_name(run.dataset), options, run.holdout, run.thin, run.validation, run.backbone
    )


def cell_key(result: Result) -> CellKey:
    """The cell of a result."""
    run = result.run
    settings = {name: value for name, value in result.settings.items() if name != "seed"}
    return CellKey(
        bench_of(result),
        Conditions(
            _capacity(run.learner, run.capacity),
            result.circumstances.get("at", run.at or ""),
            run.batchnorm,
            run.precision,
            run.features,
            run.every,
            run.steps,
            run.length,
            run.own_memory,
            run.weights or "",
            result.fingerprint[:12],
        ),
        run.learner,
        json.dumps(settings, sort_keys=True),
        run.order,
    )


def _capacity(learner: str, text: str) -> str:
    """As a run names it. Where each class has a share of its own, a budget per class is the same
    memory as room for all classes from the start.

    >>> _capacity("exstream", "23/class"), _capacity("verse", "23/class")
    ('23 x classes', '23/class')
    """
    shares = learner in learners.names() and getattr(learners.get(learner), "class_shares", False)
    return re.sub(r"\s*(/|per)\s*class$", " x classes", text) if shares else text


def short_name(dataset: str) -> str:
    """A data set's name without its place.

    >>> short_name("folder:pictures/eth80"), short_name("core50")
    ('eth80', 'core50')
    """
    return dataset.rstrip("/").rpartition(":")[2].rpartition("/")[2]


def orders_of(cells: Cells) -> list[str]:
    """The orderings that occur, as the paper's tables order them."""
    return [order for order in streams.names() if any(order in by for by in cells.values())]


def fine_tunes(learner: str) -> bool:
    """It trains on its memory before it answers, so it is no streaming method."""
    # a name that a file gives is looked up among what is installed, and never imported
    return learner in learners.names() and learners.get(learner).traits.fine_tuning


def competes(learner: str) -> bool:
    """Does a learner compete for the first place? Those that predict without fine-tuning do."""
    return learner != "offline" and not fine_tunes(learner)


def rank_learners(cells: Cells, order: str) -> list[str]:
    """Competing learners of an ordering; the one that beats most others comes first.

    Learners may have run with different seeds, and seeds are not equally hard. So two learners are
    compared by μ_all on the seeds that both have, and a learner's rank is by the number of others
    that it beats minus the number that beat it (Copeland's rule), then by its mean.
    """
    there = [name for name, by in cells.items() if order in by and competes(name)]
    scores = {name: {r.run.seed: r.mu_all for r in cells[name][order]} for name in there}
    wins = {a: sum(np.sign(_lead(scores[a], scores[b])) for b in there) for a in there}
    return sorted(there, key=lambda name: (-wins[name], -np.mean(list(scores[name].values()))))


def _lead(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float:
    """Mean difference over the seeds both have; 0 without any."""
    both = ours.keys() & theirs.keys()
    return sum(ours[seed] - theirs[seed] for seed in both) / len(both) if both else 0.0


def format_settings(settings: Mapping[str, Any]) -> str:
    """Settings as recipes have them.

    >>> format_settings({"clip": None, "lr": 0.03})
    'clip = none, lr = 0.03'
    """
    return ", ".join(f"{n} = {'none' if v is None else v}" for n, v in settings.items())


def most_common(backbones: Iterable[str]) -> str:
    """The backbone that most have: it need not be named every time.

    >>> most_common(["a", "b", "a"])
    'a'
    """
    return max(sorted(counts := Counter(backbones)), key=counts.__getitem__, default="")


def is_verse(learner: str) -> bool:
    """VERSE itself, or a variant of it."""
    return learner == "verse" or learner.startswith("verse-")


def _preference(result: Result) -> tuple[int, bool, int]:
    return (result.run.seed, not result.offline, len(result.run.settings))


def _nth(n: int) -> str:
    return {2: "2nd", 3: "3rd"}.get(n, f"{n}th")


def _by_name(bench: Bench) -> tuple[str, str]:
    return (bench.slug, repr(bench))
