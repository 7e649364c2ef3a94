"""Benchmarks of the Avalanche library as streams: its experiences in order, each sample once.

Nothing of Avalanche is imported: a benchmark is anything with a ``train_stream`` and a
``test_stream`` of experiences that have a ``dataset`` of (x, y, …) items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch.utils.data import Dataset, Subset

from verse import streams
from verse.backbones import Extractor
from verse.compat.torch import samples
from verse.evaluate import Samples
from verse.streams import EvaluationPoint, Schedule
from verse.types import BadData


class Experience(Protocol):
    """A part of a stream."""

    @property
    def dataset(self) -> Any:
        """Its items."""


class Benchmark(Protocol):
    """What Avalanche calls a benchmark or scenario."""

    @property
    def train_stream(self) -> Iterable[Experience]:
        """What is learned, in order."""

    @property
    def test_stream(self) -> Iterable[Experience]:
        """What is tested on."""


@dataclass(frozen=True, eq=False)
class Stream:
    """What ``verse.evaluate.stream`` takes besides the learner."""

    train: Samples
    test: Samples
    schedule: Schedule


def lessons(benchmark: Benchmark, *, seed: int | None = 0) -> Iterator[tuple[Any, Any]]:
    """(x, y) of all training experiences in order, shuffled inside each (``seed=None``: not).

    Goes into ``StreamClassifier.learn_one`` item by item.
    """
    for dataset in _shuffle(benchmark, seed):
        for i in range(len(dataset)):
            item = dataset[i]
            yield item[0], int(item[1])


def build_stream(
    benchmark: Benchmark, G: Extractor, *, seed: int | None = 0, workers: int = 0
) -> Stream:
    """The benchmark as features in memory, tested after every experience on the classes so far.

    Items must be what G takes: images without the benchmark's own normalisation (``transform``),
    or features for a backbone without G. ``seed`` shuffles inside each experience, None does not;
    ``workers`` processes decode.

    >>> from types import SimpleNamespace as Thing
    >>> from verse.backbones import identity
    >>> one = Thing(dataset=[([0.0, 1.0], 3, 0), ([0.0, 2.0], 3, 0)])
    >>> two = Thing(dataset=[([1.0, 0.0], 5, 0)])
    >>> s = build_stream(Thing(train_stream=[one, two], test_stream=[one, two]), identity(2).G)
    >>> s.schedule.events
    (EvaluationPoint(after=2, classes=(3,)), EvaluationPoint(after=3, classes=(3, 5)))
    """
    parts = [samples(part, G, workers=workers) for part in _shuffle(benchmark, seed)]
    tests = [
        samples(_dataset(experience), G, workers=workers) for experience in benchmark.test_stream
    ]
    if not parts or not tests:
        raise BadData("the benchmark has no training or no test experiences")
    events: list[EvaluationPoint] = []
    seen: dict[int, None] = {}
    after = 0
    for part in parts:
        after += len(part)
        seen |= dict.fromkeys(part.y.tolist())
        events.append(EvaluationPoint(after, tuple(seen)))
    return Stream(_join(parts), _join(tests, first_video=after), Schedule(tuple(events)))


def _dataset(experience: Experience) -> Dataset[Any]:
    dataset = experience.dataset
    return dataset if isinstance(dataset, Dataset) else Subset(dataset, range(len(dataset)))


def _shuffle(benchmark: Benchmark, seed: int | None) -> Iterator[Subset[Any]]:
    for number, experience in enumerate(benchmark.train_stream):
        n = len(experience.dataset)
        order = np.arange(n)
        if seed is not None:
            alone = np.arange(n)
            # a seed of its own for each experience: equal lengths are not shuffled alike
            order = streams.order("iid", np.zeros(n), alone, np.zeros(n), seed * 100_003 + number)
        yield Subset(experience.dataset, order.tolist())


def _join(parts: list[Samples], first_video: int = 0) -> Samples:
    z = torch.cat([part.features(0, len(part)) for part in parts])
    y = np.concatenate([part.y for part in parts])
    return Samples(z, y, np.arange(first_video, first_video + len(y)))
