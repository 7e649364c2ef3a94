"""Whether a result read from a file can be one: types and counts, before reports use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from operator import gt
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from verse.experiments.result import Bound, Result
from verse.experiments.run import Run, check_types
from verse.types import BadSetting

ROWS, COUNTS = list[list[int]], list[int]
LARGEST = 2**53  # what every reader of JSON can count to


def check_result(result: Result) -> None:
    """Raise ValueError with what is wrong with a result; nothing that it names is looked up.

    ``check_bounds`` checks the reference of Ω.
    """
    try:
        check_types(result.run.document())
    except BadSetting as error:
        raise ValueError(str(error)) from error
    _check(result, Result, "")
    if not result.events:
        raise ValueError("it has no test")
    if len(result.offline) not in (0, len(result.events)):
        raise ValueError("Offline has other tests than the run")
    classes = range(len(result.classes))
    for event in result.events:
        for rows in (event.by_class, event.by_video):
            _check_counts(rows)
        _check_labels([*event.classes, *(row[0] for row in event.by_class)], classes)
        for row in event.confusion:
            if len(row) != 3 or row[0] not in classes or row[1] not in range(-1, len(classes)):
                raise ValueError("its confusion names a class that it does not have")


def check_bounds(bounds: Sequence[Bound]) -> None:
    """The same for what Ω divides by, which many results share."""
    for bound in bounds:
        _check(bound, Bound, "")
        _check_counts(bound.by_video)
        _check_counts(bound.best_by_video)
        if bound.reference == 0:
            raise ValueError("Offline is never right")


def _check_labels(labels: Sequence[int], classes: range) -> None:
    if labels and (min(labels) < 0 or max(labels) >= len(classes)):
        raise ValueError("a test names a class that it does not have")


def _check_counts(rows: Sequence[Sequence[int]]) -> None:
    """[name, right, frames] of each."""
    if not rows:
        return
    if {*map(len, rows)} != {3}:
        raise ValueError("a test has a row that is not a name, right answers and frames")
    _, right, frames = zip(*rows, strict=True)  # in C, for a store has millions
    if min(right) < 0 or any(map(gt, right, frames)):
        raise ValueError("a test has more right answers than frames")
    if not any(frames):
        raise ValueError("a test has no frames")


def _all_counts(row: list[Any]) -> bool:
    """Whole numbers of a usual size; in C, for a store has millions."""
    if not {*map(type, row)} <= {int}:
        return False
    return min(row, default=0) > -LARGEST and max(row, default=0) < LARGEST


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """What it is of, and what is in it."""
    return get_origin(hint) or hint, get_args(hint)


def _check(value: Any, hint: Any, place: str) -> None:
    """A value is what its annotation says."""
    if type(value) is hint and (
        hint is str or hint is bool or ((hint is int or hint is float) and abs(value) < LARGEST)
    ):
        return  # most values
    kind, inner = _parts(hint)
    if kind is Any or kind is Run or inner[:1] == (Bound,):
        return
    if hint == ROWS:  # most of a result, and quick
        rows_are_lists = type(value) is list and {*map(type, value)} <= {list}
        if rows_are_lists and _all_counts(list(chain.from_iterable(value))):
            return
        raise ValueError(f"{place} is no list of counts: {value!r:.80}")
    if hint == COUNTS and type(value) is list and _all_counts(value):
        return  # most of the rest
    if kind is UnionType:
        if value is not None or NoneType not in inner:
            _check(value, next(one for one in inner if one is not NoneType), place)
        return
    expected = (int, float) if kind is float else kind
    if not isinstance(value, expected) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{place or 'it'} is no {kind.__name__}: {value!r:.80}")
    if is_dataclass(value) and isinstance(kind, type):
        for name, inside in _hints(kind).items():
            _check(getattr(value, name), inside, name)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check(key, inner[0], place)
            _check(item, inner[1], place)
    elif isinstance(value, list | tuple):
        if inner[0] is str and {*map(type, value)} <= {str}:
            return
        for item in value:
            _check(item, inner[0], place)
    elif isinstance(value, int | float) and not abs(value) < LARGEST:  # nor NaN
        raise ValueError(f"{place} is no number: {value!r:.80}")
