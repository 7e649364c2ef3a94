"""The changing parts of a learner (networks, vectors, moments, memories, generators, plain values):
how they are marked and taken back, saved and restored, and followed by a reader.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from verse.kernels.moments import Moments
from verse.kernels.randomness import Random
from verse.kernels.vector import Vector
from verse.learners.network import Net
from verse.memory.base import Memory

Parts: TypeAlias = Mapping[str, Any]


def marks(parts: Parts) -> dict[str, Any]:
    """What taking a step back needs: references, counters and generator states, no big copies."""
    return {
        name: part.mark()
        if isinstance(part, Vector | Moments | Random | Memory)
        else copy.copy(part)
        if isinstance(part, list | dict | set)
        else part
        for name, part in parts.items()
    }


def undone(parts: Parts, marked: Mapping[str, Any]) -> dict[str, Any]:
    """Take every part back to its mark; returns the plain values as they were."""
    plain = {}
    for name, part in parts.items():
        if isinstance(part, Vector | Moments | Random | Memory):
            part.undo(marked[name])
        else:
            plain[name] = marked[name]
    return plain


def saved(parts: Parts) -> dict[str, Tensor]:
    """Everything as flat tensors."""
    state: dict[str, Tensor] = {}
    for name, part in parts.items():
        if isinstance(part, Vector | Moments | Memory):
            state |= {f"{name}.{key}": value for key, value in part.state().items()}
        elif isinstance(part, Random):
            state[name] = part.state()
        elif isinstance(part, Tensor):
            state[name] = part
        elif isinstance(part, bool | int):
            state[name] = torch.tensor(part)
        elif isinstance(part, float):
            state[name] = torch.tensor(part, dtype=torch.float64)
        elif isinstance(part, list | set):
            state[name] = torch.tensor(sorted(part) if isinstance(part, set) else part)
        elif part is not None:
            raise TypeError(f"{name} is a {type(part).__name__}, which has no saved form")
    return state


def restored(parts: Parts, state: Mapping[str, Tensor], device: torch.device) -> dict[str, Any]:
    """Bring every part to its saved state; returns the plain values to set."""
    plain = {}
    for name, part in parts.items():
        if isinstance(part, Vector | Moments | Memory):
            prefix = f"{name}."
            part.load_state({k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)})
        elif isinstance(part, Random):
            part.load_state(state[name])
        else:
            plain[name] = _plain(part, state.get(name), device)
    return plain


def _plain(part: Any, value: Tensor | None, device: torch.device) -> Any:
    if value is None:
        return None
    if isinstance(part, bool | int | float):
        return type(part)(value.item())
    if isinstance(part, list | set):
        return type(part)(value.tolist())
    return value.clone().to(device)


def followed(mine: Parts, theirs: Parts, *, memories: bool) -> dict[str, Any]:
    """Copy what answers depend on; returns the plain values to set. Generators never come along."""
    plain = {}
    for name, part in theirs.items():
        if isinstance(part, Net):
            mine[name].grow_to(part.n)
            mine[name].assign(part)
        elif isinstance(part, Vector):
            mine[name].move_to(part.layout)
            mine[name].data.copy_(part.data)
        elif isinstance(part, Moments):
            mine[name].follow(part)
        elif isinstance(part, Memory):
            if memories:
                mine[name].load_state(part.state())
        elif isinstance(part, Tensor):
            plain[name] = part.clone()
        elif not isinstance(part, Random):
            plain[name] = copy.copy(part)
    return plain
