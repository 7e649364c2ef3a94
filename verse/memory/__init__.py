"""Replay buffers (episodic memories), one replacement rule per file.

Belongs here: which samples are kept and replaced, within which budget. Does not belong here: what
is done with the samples.

The namespace is the registry: a class below is available by its ``name``.
"""

from __future__ import annotations

from verse.memory.base import Memory
from verse.memory.class_balanced import ClassBalanced
from verse.memory.greedy_balanced import GreedyBalanced
from verse.memory.reservoir import Reservoir
from verse.memory.ring import Ring
from verse.suggestions import suggest
from verse.types import BadSetting

__all__ = [
    "ClassBalanced",
    "GreedyBalanced",
    "Memory",
    "Reservoir",
    "Ring",
    "get",
    "names",
]

_RULES: dict[str, type[Memory]] = {
    rule.name: rule for rule in (Reservoir, ClassBalanced, Ring, GreedyBalanced)
}


def names() -> list[str]:
    """The names of all memory rules.

    >>> names()
    ['reservoir', 'class-balanced', 'fifo', 'greedy-balanced']
    """
    return list(_RULES)


def get(name: str) -> type[Memory]:
    """The memory class of that name; an unknown name suggests the nearest."""
    if name not in _RULES:
        raise BadSetting(f"unknown memory {name!r}; {suggest(name, _RULES)}")
    return _RULES[name]
