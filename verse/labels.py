"""Labels: what a user calls the classes, and the number by which a learner knows each."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from numbers import Integral

from verse.types import BadLabel, Label

BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols that show nothing."""


def check_label(label: object) -> Label:
    """A label is a string that can be seen, or an integer; those of numpy become Python's.

    >>> check_label("mug")
    'mug'
    """
    label = _of_a_kind(label)
    if isinstance(label, str):
        kinds = {unicodedata.category(c) for c in label}
        if "Cs" in kinds:
            raise BadLabel(f"invalid label: {label!r} is not UTF-8 text")
        if kinds & {"Zl", "Zp"}:
            raise BadLabel("invalid label: it must not contain line or paragraph separators")
        if not label.strip():
            raise BadLabel("a label must not be empty")
        if not any(unicodedata.category(c)[0] in "LNPS" and c not in BLANK for c in label):
            raise BadLabel(f"invalid label: nothing of {label!a} can be seen")
    return label


def _of_a_kind(label: object) -> Label:
    """Text or a number, whatever it says: old folders hold labels that are refused today."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, bool) or not isinstance(label, Integral):
        raise BadLabel(f"a label is a string or an integer, not {type(label).__name__}")
    return int(label)


class Labels:
    """The labels of the classes there are, in order of arrival.

    The number of a class is the learner's output for it: the first class is 0, the next one 1.
    When a class leaves, those behind it move up.

    Parameters
    ----------
    names
        Labels to begin with.

    >>> labels = Labels()
    >>> labels.add("mug"), labels.add("cup")
    (0, 1)
    >>> labels.remove("mug")
    >>> labels.names, labels.number("cup")
    (('cup',), 0)
    """

    def __init__(self, names: Iterable[Label] = ()) -> None:
        self._set(list(names))

    def _set(self, names: list[Label]) -> None:
        self._names = names  # number → label
        self._numbers = {label: number for number, label in enumerate(names)}
        if len(self._numbers) < len(names):
            raise ValueError("two classes have the same label")

    @property
    def names(self) -> tuple[Label, ...]:
        """The label of each number."""
        return tuple(self._names)

    @property
    def known(self) -> list[tuple[Label, int]]:
        """(label, number) of the classes there are."""
        return list(self._numbers.items())

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Label]:
        return iter(self._numbers)

    def __contains__(self, label: object) -> bool:
        return label in self._numbers

    def name(self, number: int) -> Label:
        """The label of a number."""
        return self._names[number]

    def number(self, label: Label) -> int:
        """The number of a class; an unknown label is an error that names those there are."""
        if _of_a_kind(label) not in self._numbers:
            raise BadLabel(f"there is no class {label!r}; there are {list(self)}")
        return self._numbers[label]

    def number_or_next(self, label: Label) -> int:
        """The number of a class, or the one that it gets by ``add``."""
        return self._numbers.get(label, len(self._names))

    def add(self, label: Label) -> int:
        """A class arrived, if it is not here already; returns its number."""
        number = self.number_or_next(label)
        if number == len(self._names):
            self._names.append(label)
            self._numbers[label] = number
        return number

    def remove(self, label: Label) -> None:
        """A class is forgotten or became a part of another one."""
        self._set([name for name in self._names if name != label])

    def rename(self, label: Label, new: Label) -> None:
        """Give a class another label."""
        if new in self._numbers:
            raise BadLabel(f"there is a class {new!r} already: merge them instead")
        self._set([new if name == label else name for name in self._names])
