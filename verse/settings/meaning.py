"""What a hyper-parameter means and which values it takes, written once, with its type.

A constructor says ``lr: Rate = 0.01`` or ``gamma: Annotated[float, share("…")]``. Its
validation, the JSON schema, recipes, the service and the documentation all read it there. A
subclass, and a function that makes a learner, inherit what they do not say themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final


def about(
    meaning: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    one_of: Sequence[str] = (),
    pattern: str = "",
    such_as: Sequence[str] = (),
) -> dict[str, Any]:
    """The words of JSON schema for it, to stand in an ``Annotated`` type.

    >>> about("share of what stays", least=0, below=1)
    {'description': 'share of what stays', 'minimum': 0, 'exclusiveMaximum': 1}
    """
    words = {
        "description": meaning,
        "exclusiveMinimum": above,
        "minimum": least,
        "exclusiveMaximum": below,
        "maximum": most,
        "enum": list(one_of) or None,
        "pattern": pattern or None,
        "examples": list(such_as) or None,
    }
    return {key: value for key, value in words.items() if value is not None}


def share(meaning: str) -> dict[str, Any]:
    """The same for a number from 0 to 1.

    >>> share("chance of a change")
    {'description': 'chance of a change', 'minimum': 0, 'maximum': 1}
    """
    return about(meaning, least=0, most=1)


_DRAWS: Final = "samples replayed in a step"

Rate = Annotated[float, about("learning rate", above=0)]
Draws = Annotated[int, about(_DRAWS, least=1)]
DrawsOrNone = Annotated[int, about(_DRAWS, least=0)]
Clip = Annotated[float | None, about("largest norm of a gradient; none: not clipped", above=0)]
Momentum = Annotated[float, about("momentum", least=0, below=1)]
WeightDecay = Annotated[float, about("weight decay", least=0)]
BatchSize = Annotated[int, about("batch size", least=1)]
Seed = Annotated[int, about("random seed", least=0)]
