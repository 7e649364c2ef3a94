"""A learner's settings from text or a recipe, bound against its constructor's signature."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import Any

from verse import learners
from verse.types import BadSetting

Value = str | int | float | bool | None
_WORDS: dict[str, Value] = {"none": None, "null": None, "true": True, "false": False}


def bind(learner: str, given: Mapping[str, Any]) -> dict[str, Value]:
    """The settings with the types the constructor declares; an unknown one is an error.

    >>> bind("verse", {"beta": "0.03", "clip": "none", "C": 8})
    {'C': 8, 'beta': 0.03, 'clip': None}
    """
    known = {key: p for key, p in learners.settings(learner).items() if key != "seed"}
    for key in given:
        if key == "seed":
            raise BadSetting("the seed is not a setting: give it as seed (--seed)")
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f", did you mean {near[0]!r}?" if near else "."
            raise BadSetting(f"{learner} has no setting {key!r}{hint} It has: {', '.join(known)}")
    return {key: _typed(learner, known[key], given[key]) for key in sorted(given)}


def defaults(learner: str) -> dict[str, Value]:
    """The settings a learner has when none is given.

    >>> defaults("ncm")
    {}
    """
    return {k: p.default for k, p in learners.settings(learner).items() if k != "seed"}


def _typed(learner: str, parameter: inspect.Parameter, value: Any) -> Value:
    kinds = {kind.strip() for kind in _declared(parameter).split("|")}
    if isinstance(value, str) and "str" not in kinds:
        value = _read(value)
    if value is None and "None" in kinds:
        return None
    if isinstance(value, bool):
        if "bool" in kinds:
            return value
    elif isinstance(value, int) and "int" in kinds:
        return value
    elif isinstance(value, int | float) and "float" in kinds:
        return float(value)
    elif isinstance(value, str) and "str" in kinds:
        return None if "None" in kinds and value.lower() == "none" else value
    wanted = " or ".join(sorted(kinds))
    raise BadSetting(f"{learner}: {parameter.name} is {wanted}, not {value!r}")


def _declared(parameter: inspect.Parameter) -> str:
    """The annotation as written (they are postponed, so they are text already)."""
    annotation = parameter.annotation
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "str")


def _read(text: str) -> Value:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
