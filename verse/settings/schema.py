"""A learner's hyper-parameters as JSON schema, read off its constructor's signature."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from verse.settings.rules import JSON_NAMES, Property, keeps, kind_in_words, kinds, of_kind, rule
from verse.types import BadSetting

_OWN = ("type", "anyOf", "default")  # said by every signature itself, never inherited


def json_schema(title: str, make: Callable[..., object]) -> dict[str, Any]:
    """JSON schema (2020-12) of the keyword-only parameters of ``make``.

    >>> def tune(*, lr: float = 0.1, clip: float | None = None) -> None:
    ...     "Follow the gradient."
    >>> document = json_schema("tune", tune)
    >>> document["properties"]["clip"]
    {'type': ['number', 'null'], 'default': None}
    >>> document["description"]
    'Follow the gradient.'
    """
    known = {name: dict(allowed) for name, allowed in properties(make).items()}
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": (inspect.getdoc(make) or "").partition("\n")[0],
        "type": "object",
        "properties": known,
        "additionalProperties": False,
    }
    if needed := [name for name, allowed in known.items() if "default" not in allowed]:
        document["required"] = needed
    return document


def list_parameters(make: Callable[..., object]) -> str:
    """The settings as the section of a docstring.

    >>> from verse.settings import Rate
    >>> def tune(*, lr: Rate = 0.1) -> None: ...
    >>> print(list_parameters(tune))
    Parameters
    ----------
    lr
        Learning rate; > 0, default 0.1.
    """
    lines = ["Parameters", "----------"]
    # not from the cache: names that annotations use may be defined after the class
    for name, allowed in properties.__wrapped__(make).items():
        meaning = str(allowed.get("description", "")) or "See the text"
        default = f"default {allowed['default']}" if "default" in allowed else ""
        more = ", ".join(filter(None, (rule(allowed), default)))
        lines += [name, f"    {meaning[0].upper()}{meaning[1:]}{'; ' if more else ''}{more}."]
    return "\n".join(lines)


@functools.cache
def properties(make: Callable[..., object]) -> dict[str, Property]:
    """Keyword-only parameter → its schema.

    What a signature does not say is inherited: from the constructor of the base class, or of the
    learner that a function makes.
    """
    keywords = {
        name: parameter
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    hints = _hints(make, keywords)
    if inspect.isclass(make):
        origin: Any = next(base for base in make.__mro__[1:] if "__init__" in vars(base))
    else:
        origin = hints.get("return")
    written = inspect.isclass(origin) and inspect.isfunction(origin.__init__)
    more = properties(origin) if written else {}
    found = {}
    for name, parameter in keywords.items():
        guess = Any if parameter.default in (None, parameter.empty) else type(parameter.default)
        own = _kind(hints.get(name, guess))
        if parameter.default is not parameter.empty:
            own["default"] = parameter.default
        found[name] = own | {
            key: value
            for key, value in more.get(name, {}).items()
            if key not in own and key not in _OWN
        }
    return found


def _hints(make: Callable[..., object], keywords: Iterable[str]) -> dict[str, object]:
    """Annotations of these parameters and of the return value; none if one cannot be resolved."""
    function = make.__init__ if inspect.isclass(make) else make
    written = getattr(function, "__annotations__", {})
    wanted = {name: written[name] for name in (*keywords, "return") if name in written}
    holder = type("holder", (), {"__annotations__": wanted})
    try:
        return typing.get_type_hints(
            holder, getattr(function, "__globals__", {}), include_extras=True
        )
    except NameError:
        return {}


def _kind(kind: object) -> Property:
    """An annotation as schema; what JSON has no word for may be anything."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        told = [_kind(inside[0]), *(part for part in inside[1:] if isinstance(part, dict))]
        return {key: value for part in told for key, value in part.items()}
    if origin in (typing.Union, types.UnionType):
        parts = [_kind(part) for part in inside]
        if all(list(part) == ["type"] for part in parts):
            return {"type": [part["type"] for part in parts]}
        return {"anyOf": parts}
    if origin is typing.Literal:
        return {"enum": list(inside)}
    if origin in (tuple, list):
        return {"type": "array"}
    return {"type": JSON_NAMES[kind]} if isinstance(kind, type) and kind in JSON_NAMES else {}


def require(condition: bool, message: str) -> None:
    """Validate a hyper-parameter at construction."""
    if not condition:
        raise BadSetting(message)


def require_settings(make: Callable[..., object], given: Mapping[str, Any]) -> None:
    """Validate all hyper-parameters by the annotations of the constructor.

    A constructor calls it first: ``require_settings(VERSE, locals())``.

    >>> from verse.settings import Rate
    >>> def tune(*, lr: Rate) -> None:
    ...     require_settings(tune, locals())
    >>> tune(lr=-1)
    Traceback (most recent call last):
    verse.types.BadSetting: lr must be > 0, not -1
    """
    for name, allowed in properties(make).items():
        value = given[name]
        require(of_kind(allowed, value), f"{name} must be {kind_in_words(allowed)}, not {value!r}")
        require(keeps(allowed, value), f"{name} must be {rule(allowed)}, not {value!r}")


def require_numbers(make: Callable[..., object], given: Mapping[str, Any]) -> None:
    """Validate arguments that are annotated as numbers or as true or false; the others pass.

    >>> def render(frames: int = 10, title: str = "") -> None: ...
    >>> require_numbers(render, {"frames": 3, "title": 5})
    >>> require_numbers(render, {"frames": 2.5})
    Traceback (most recent call last):
    verse.types.BadSetting: frames must be a whole number, not 2.5
    """
    for name, hint in _hints(make, given).items():
        allowed = _kind(hint)
        if name in given and "type" in allowed and not {"string", "array"} & set(kinds(allowed)):
            value, expected = given[name], kind_in_words(allowed)
            require(of_kind(allowed, value), f"{name} must be {expected}, not {value!r}")
