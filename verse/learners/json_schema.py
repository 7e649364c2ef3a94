"""A learner's hyper-parameters as JSON schema, read off its constructor's signature."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

_NAMES: dict[object, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    type(None): "null",
}


def schema(title: str, make: Callable[..., object]) -> dict[str, Any]:
    """JSON schema (2020-12) of the keyword-only parameters of ``make``.

    >>> def tune(*, lr: float = 0.1, clip: float | None = None) -> None:
    ...     "Follow the gradient."
    >>> document = schema("tune", tune)
    >>> document["properties"]["clip"]
    {'type': ['number', 'null'], 'default': None}
    >>> document["description"]
    'Follow the gradient.'
    """
    kinds = typing.get_type_hints(make.__init__ if inspect.isclass(make) else make)
    keywords = [
        parameter
        for parameter in inspect.signature(make).parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": (inspect.getdoc(make) or "").partition("\n")[0],
        "type": "object",
        "properties": {p.name: _property(kinds[p.name], p.default) for p in keywords},
        "additionalProperties": False,
    }
    if needed := [p.name for p in keywords if p.default is p.empty]:
        document["required"] = needed
    return document


def _property(kind: object, default: object) -> dict[str, Any]:
    document = _kind(kind)
    if default is not inspect.Parameter.empty:
        document["default"] = default
    return document


def _kind(kind: object) -> dict[str, Any]:
    """An annotation as schema; what JSON has no word for may be anything."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        parts = [_kind(part) for part in inside]
        if all(list(part) == ["type"] for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}
    if origin is typing.Literal:
        return {"enum": list(inside)}
    if origin in (tuple, list):
        return {"type": "array"}
    return {"type": _NAMES[kind]} if kind in _NAMES else {}
