"""The four orderings of a stream, and when a stream is tested: pure functions of arrays.

========================  =====================================================================
``iid``                   all frames shuffled
``class-iid``             classes shuffled, frames shuffled inside a class
``instance``              videos shuffled, frames in time order
``class-instance``        classes shuffled, videos shuffled inside a class, frames in time order
========================  =====================================================================

Every shuffle has its own random generator, seeded by the seed, its purpose and its class.
So two classes of equal size are permuted differently, and the class order of one seed is the same
in both class orderings, which lets them share what is trained per set of classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from verse.suggestions import suggest_and_list
from verse.types import BadData, BadSetting

Ints = npt.NDArray[np.int64]

# What a random stream is for; part of its key, so the numbers are for ever.
_ALL_FRAMES, _CLASSES, _FRAMES_OF_CLASS, _ALL_VIDEOS, _VIDEOS_OF_CLASS = range(5)


def order(
    name: str, labels: npt.ArrayLike, videos: npt.ArrayLike, frames: npt.ArrayLike, seed: int
) -> Ints:
    """The stream as a permutation of indices into the three parallel arrays.

    >>> order("class-instance", [0, 0, 1, 1], [0, 0, 1, 1], [1, 0, 0, 1], seed=0).tolist()
    [2, 3, 1, 0]
    """
    table = _Table(*(np.asarray(a, dtype=np.int64) for a in (labels, videos, frames)))
    shapes = {column.shape for column in table}
    if len(shapes) != 1 or table.labels.ndim != 1:
        raise BadData(f"labels, videos and frames must be lists of one length, not {shapes}")
    return _find_ordering(name)(table, seed)


def check_ordering(name: str, seed: int) -> None:
    """Refuse an ordering that does not exist and a seed that none has, before any data is read."""
    _find_ordering(name)
    _check_seed(seed)


def shorten(stream: Ints, length: int) -> Ints:
    """``length`` evenly spaced frames of a stream; 0, or more than there are: all.

    >>> shorten(np.arange(10), 4).tolist()
    [0, 2, 5, 7]
    """
    if not 0 < length < len(stream):
        return stream
    return stream[np.arange(length) * len(stream) // length]


def names() -> tuple[str, ...]:
    """The names of the orderings."""
    return tuple(_ORDERINGS)


def class_order(labels: npt.ArrayLike, seed: int) -> Ints:
    """The classes present, in the order class-iid and class-instance show them.

    >>> class_order([2, 2, 0, 1], seed=0).tolist() == class_order([0, 1, 2], seed=0).tolist()
    True
    """
    classes = np.unique(np.asarray(labels, dtype=np.int64))
    return classes[_shuffle(len(classes), seed, _CLASSES)]


class _Table(NamedTuple):
    labels: Ints
    videos: Ints
    frames: Ints


def _iid(table: _Table, seed: int) -> Ints:
    return _shuffle(len(table.labels), seed, _ALL_FRAMES)


def _class_iid(table: _Table, seed: int) -> Ints:
    parts = []
    for c in class_order(table.labels, seed).tolist():
        rows = np.flatnonzero(table.labels == c)
        parts.append(rows[_shuffle(len(rows), seed, _FRAMES_OF_CLASS, c)])
    return _join(parts)


def _instance(table: _Table, seed: int) -> Ints:
    return _videos_in_time(np.arange(len(table.labels)), table, seed, _ALL_VIDEOS)


def _class_instance(table: _Table, seed: int) -> Ints:
    return _join(
        [
            _videos_in_time(np.flatnonzero(table.labels == c), table, seed, _VIDEOS_OF_CLASS, c)
            for c in class_order(table.labels, seed).tolist()
        ]
    )


_ORDERINGS: dict[str, Callable[[_Table, int], Ints]] = {
    "iid": _iid,
    "class-iid": _class_iid,
    "instance": _instance,
    "class-instance": _class_instance,
}


def _find_ordering(name: str) -> Callable[[_Table, int], Ints]:
    if name not in _ORDERINGS:
        raise BadSetting(f"there is no ordering {name!r}{suggest_and_list(name, _ORDERINGS)}")
    return _ORDERINGS[name]


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise BadSetting(f"a seed is a whole number from 0, not {seed}")


def _shuffle(n: int, seed: int, *purpose: int) -> Ints:
    """A permutation of 0…n-1 from the random stream (seed, purpose).

    Sorting raw 64-bit draws keeps the permutations for ever: NumPy promises the bits of PCG64 and
    SeedSequence, but not those of ``Generator.permutation``.
    """
    _check_seed(seed)
    bits = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=purpose))
    return np.argsort(bits.random_raw(n), kind="stable").astype(np.int64)


def _videos_in_time(rows: Ints, table: _Table, seed: int, *purpose: int) -> Ints:
    ids, place = np.unique(table.videos[rows], return_inverse=True)
    rank = np.argsort(_shuffle(len(ids), seed, *purpose))  # video → when it is shown
    return rows[np.lexsort((table.frames[rows], rank[place]))]


def _join(parts: list[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class EvaluationPoint:
    """One test: after ``after`` frames of the stream, on ``classes`` in order of arrival.

    Parameters
    ----------
    after
        Frames of the stream.
    classes
        Those tested, in order of arrival.

    >>> EvaluationPoint(after=10, classes=(3, 1)).select([1, 2, 3, 3]).tolist()
    [0, 2, 3]
    """

    after: int
    classes: tuple[int, ...]

    def select(self, test_labels: npt.ArrayLike) -> Ints:
        """Indices of the test frames under test at this event."""
        return np.flatnonzero(np.isin(np.asarray(test_labels), self.classes))


@dataclass(frozen=True)
class Schedule:
    """The test events of one stream; a learner and its Offline share this object.

    Class orderings: after every ``every`` classes and at the end, on the classes seen so far.
    The others: ``steps`` equal steps, on all classes.

    Parameters
    ----------
    events
        In order.

    >>> Schedule.of("class-iid", [2, 2, 0, 1, 1], every=2).events
    (EvaluationPoint(after=3, classes=(2, 0)), EvaluationPoint(after=5, classes=(2, 0, 1)))
    """

    events: tuple[EvaluationPoint, ...]

    @classmethod
    def of(
        cls, order_name: str, stream_labels: npt.ArrayLike, every: int = 1, steps: int = 10
    ) -> Schedule:
        """The schedule of a stream whose labels, in stream order, are ``stream_labels``."""
        _find_ordering(order_name)
        labels = np.asarray(stream_labels, dtype=np.int64)
        if every < 1 or steps < 1:
            raise BadSetting("every (classes a test event) and steps are whole numbers from 1")
        if not len(labels):
            raise BadData("an empty stream has no test events")
        if order_name.startswith("class-"):
            return cls(_after_classes(order_name, labels, every))
        n, classes = len(labels), tuple(np.unique(labels).tolist())
        ends = sorted({max(n * k // steps, 1) for k in range(1, steps + 1)})
        return cls(tuple(EvaluationPoint(end, classes) for end in ends))

    def __len__(self) -> int:
        return len(self.events)


def _after_classes(order_name: str, labels: Ints, every: int) -> tuple[EvaluationPoint, ...]:
    last = np.append(np.flatnonzero(labels[1:] != labels[:-1]), len(labels) - 1)  # ends of blocks
    seen = labels[last].tolist()
    if len(set(seen)) != len(seen):
        raise BadData(
            f"these labels are not a {order_name} stream: a class comes back after "
            "another one; order the frames with verse.streams.order first"
        )
    counts = sorted({*range(every, len(seen) + 1, every), len(seen)})
    return tuple(EvaluationPoint(int(last[k - 1]) + 1, tuple(seen[:k])) for k in counts)
