"""A learner's settings from text or a recipe, bound against the schema of its constructor."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

from verse.settings.rules import JSON_NAMES, Property, keeps, kinds, refuse_unknown, rule
from verse.types import BadSetting

Value = str | int | float | bool | None
_WORDS: dict[str, Value] = {"none": None, "null": None, "true": True, "false": False}
_PYTHON = {word: "None" if kind is NoneType else kind.__name__ for kind, word in JSON_NAMES.items()}


def parse_settings(
    learner: str, given: Mapping[str, Any], known: Mapping[str, Property]
) -> dict[str, Value]:
    """The settings with the types and in the ranges that the schema's properties declare; an
    unknown one is an error.

    >>> rates = {"beta": {"type": "number", "exclusiveMinimum": 0}}
    >>> parse_settings("verse", {"beta": "0.03"}, rates)
    {'beta': 0.03}
    >>> parse_settings("verse", {"beta": 0}, rates)
    Traceback (most recent call last):
    verse.types.BadSetting: verse: beta must be > 0, not 0.0
    """
    if "seed" in given:
        raise BadSetting("the seed is not a setting: give it as seed (--seed)")
    known = {key: allowed for key, allowed in known.items() if key != "seed"}
    refuse_unknown(learner, given, known)
    bound = {key: _convert(learner, key, known[key], given[key]) for key in sorted(given)}
    for key, value in bound.items():
        if not keeps(known[key], value):
            raise BadSetting(f"{learner}: {key} must be {rule(known[key])}, not {value!r}")
    return bound


def _convert(learner: str, name: str, allowed: Property, value: Any) -> Any:
    wanted = kinds(allowed)
    if isinstance(value, str) and "string" not in wanted:
        value = _read(value)
    if not wanted:
        return value  # JSON has no word for it: the learner says
    if value is None and "null" in wanted:
        return None
    if isinstance(value, bool):
        if "boolean" in wanted:
            return value
    elif isinstance(value, int) and "integer" in wanted:
        return value
    elif isinstance(value, int | float) and "number" in wanted:
        return float(value)
    elif isinstance(value, str) and "string" in wanted:
        return None if "null" in wanted and value.lower() == "none" else value
    elif isinstance(value, list) and "array" in wanted:
        return value
    names = " or ".join(sorted(_PYTHON[kind] for kind in wanted))
    raise BadSetting(f"{learner}: {name} is {names}, not {value!r}")


def _read(text: str) -> Value:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
