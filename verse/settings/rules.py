"""Which values a setting takes, by its JSON schema: in words, and as a check."""

from __future__ import annotations

import math
import numbers
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from verse.suggestions import find_similar
from verse.types import BadSetting

Property: TypeAlias = dict[str, Any]
JSON_NAMES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    type(None): "null",
}
LARGEST = 2**63  # torch and NumPy count no further


def _is_finite(value: Any) -> bool:
    """Neither NaN nor infinite, nor a whole number that nothing here can compute with."""
    if isinstance(value, numbers.Integral):
        return -LARGEST < int(value) < LARGEST
    return math.isfinite(value)


_IS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "integer": (
        "a whole number",
        lambda value: isinstance(value, numbers.Integral) and _is_finite(value),
    ),
    "number": (
        "a finite number",
        lambda value: isinstance(value, numbers.Real) and _is_finite(value),
    ),
    "string": ("text", lambda value: isinstance(value, str)),
    "array": ("a list", lambda value: isinstance(value, list | tuple)),
    "null": ("None", lambda value: value is None),
}
_BOUNDS: dict[str, tuple[Any, str, str]] = {
    "minimum": (operator.ge, "≥", "["),
    "exclusiveMinimum": (operator.gt, ">", "("),
    "maximum": (operator.le, "≤", "]"),
    "exclusiveMaximum": (operator.lt, "<", ")"),
}


def kinds(allowed: Property) -> list[str]:
    """JSON's names of the types that a setting takes; none: any.

    >>> kinds({"type": ["number", "null"]}), kinds({"enum": ["a", "b"]})
    (['number', 'null'], ['string'])
    """
    if "type" in allowed:
        told = allowed["type"]
        return list(told) if isinstance(told, list) else [told]
    if "anyOf" in allowed:
        return list(dict.fromkeys(kind for part in allowed["anyOf"] for kind in kinds(part)))
    return list(dict.fromkeys(JSON_NAMES[type(value)] for value in allowed.get("enum", ())))


def of_kind(allowed: Property, value: object) -> bool:
    """Whether a value has one of the types that a setting takes; NaN and infinity are no numbers.

    >>> of_kind({"type": "number"}, 3), of_kind({"type": "number"}, "3")
    (True, False)
    >>> of_kind({"type": "integer"}, True), of_kind({"type": "number"}, float("inf"))
    (False, False)
    """
    told = kinds(allowed)
    if isinstance(value, bool):  # Python's are integers, JSON's are not
        return not told or "boolean" in told
    return not told or any(_IS[kind][1](value) for kind in told)


def kind_in_words(allowed: Property) -> str:
    """The types that a setting takes, for people.

    >>> kind_in_words({"type": ["number", "null"]})
    'a finite number or None'
    """
    return join_choices(_IS[kind][0] for kind in kinds(allowed))


def rule(allowed: Property) -> str:
    """In words, what the type does not say about the values; may be nothing.

    >>> rule({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
    'in (0, 1]'
    >>> rule({"type": ["integer", "null"], "minimum": 1}), rule({"enum": ["theta", "phi"]})
    ('≥ 1 or None', 'theta or phi')
    """
    bounds = [(*_BOUNDS[key][1:], allowed[key]) for key in _BOUNDS if key in allowed]
    if len(bounds) == 2:
        (_, begin, low), (_, end, high) = bounds
        text = f"in {begin}{low}, {high}{end}"
    elif bounds:
        text = f"{bounds[0][0]} {bounds[0][2]}"
    elif "enum" in allowed:
        text = join_choices(allowed["enum"])
    elif "pattern" in allowed:
        text = f"like {join_choices(allowed.get('examples', [allowed['pattern']]))}"
    else:
        return ""
    return f"{text} or None" if "null" in kinds(allowed) else text


def join_choices(values: Iterable[object]) -> str:
    """Values as a choice for people.

    >>> join_choices(["a", "b", "c"])
    'a, b or c'
    """
    *others, last = map(str, values)
    return f"{', '.join(others)} or {last}" if others else last


def keeps(allowed: Property, value: object) -> bool:
    """Whether a value of the right type keeps the ``rule``; NaN and infinity keep none.

    >>> keeps({"minimum": 0}, 0), keeps({"minimum": 0}, float("nan")), keeps({"minimum": 0}, None)
    (True, False, True)
    """
    if value is None:
        return True
    if isinstance(value, numbers.Real):
        bounds = ((test, allowed[key]) for key, (test, _, _) in _BOUNDS.items() if key in allowed)
        if not _is_finite(value) or not all(test(value, bound) for test, bound in bounds):
            return False
    if isinstance(value, str) and not re.search(allowed.get("pattern", ""), value):
        return False
    return value in allowed.get("enum", (value,))


def refuse_unknown(name: str, given: Iterable[str], known: Iterable[str]) -> None:
    """An unknown setting is an error that names the nearest one, and all there are."""
    known = list(known)
    for key in given:
        if key not in known:
            near = find_similar(key, known)
            hint = f", did you mean {near!r}?" if near else "."
            raise BadSetting(f"{name} has no setting {key!r}{hint} It has: {', '.join(known)}")
