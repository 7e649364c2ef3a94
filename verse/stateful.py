"""The protocol for everything that changes while learning: undo, save, load, follow."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


class Stateful(ABC):
    """Something with state: a network, a memory, a random generator, statistics.

    A step is undone by ``undo(mark())``, which covers growth, draws and counters; large values
    are not copied, so a step changes them last.
    """

    @abstractmethod
    def mark(self) -> Any:
        """What ``undo`` needs: references and small copies."""

    @abstractmethod
    def undo(self, mark: Any) -> None:
        """Go back to a mark."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Everything as tensors. The key "" is used if there is only one value."""

    @abstractmethod
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become what was saved."""

    @abstractmethod
    def follow(self, other: Any) -> None:
        """Take over what the answers of another one depend on."""


class PerClass(Stateful):
    """Something with a place for every class, by the number of the class's output."""

    @abstractmethod
    def add_class(self, classes: int, row: Tensor) -> None:
        """Make room for output ``classes`` − 1; ``row`` [d + 1] are its first weights and bias."""

    @abstractmethod
    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        """Close the place of an output, so that ``classes`` are left and later ones move up.

        What it held is erased, or joins output ``into``. Returns how many samples that were.
        """

    @property
    def bytes(self) -> int:
        """Bytes that stand for samples; weights do not."""
        return 0


class Attributes(Stateful):
    """The plain values (tensors, numbers, lists, sets) among the attributes of an object.

    Parameters
    ----------
    owner
        Whose attributes they are.
    names
        Of the attributes.
    device
        Where loaded tensors go.

    >>> from types import SimpleNamespace
    >>> owner = SimpleNamespace(count=3, recent=[1, 2])
    >>> values = Attributes(owner, ("count", "recent"), torch.device("cpu"))
    >>> mark = values.mark()
    >>> owner.recent.append(9)
    >>> values.undo(mark)
    >>> values.state()
    {'count': tensor(3), 'recent': tensor([1, 2])}
    """

    def __init__(self, owner: Any, names: tuple[str, ...], device: torch.device) -> None:
        self._owner, self._names, self._device = owner, names, device

    @property
    def values(self) -> dict[str, Any]:
        """As they are now, by name."""
        return {name: getattr(self._owner, name) for name in self._names}

    def mark(self) -> dict[str, Any]:
        return {
            name: copy.copy(value) if isinstance(value, list | dict | set) else value
            for name, value in self.values.items()
        }

    def undo(self, mark: dict[str, Any]) -> None:
        for name, value in mark.items():
            setattr(self._owner, name, value)

    def state(self) -> dict[str, Tensor]:
        return {n: _as_tensor(n, v) for n, v in self.values.items() if v is not None}

    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, value in self.values.items():
            optional = value is None or isinstance(value, Tensor)
            saved = state.get(name) if optional else state[name]
            if saved is None:
                loaded: Any = None
            elif isinstance(value, bool | int | float):
                loaded = type(value)(saved.item())
            elif isinstance(value, list | set):
                loaded = type(value)(saved.tolist())
            else:
                loaded = saved.clone().to(self._device)
            setattr(self._owner, name, loaded)

    def follow(self, other: Attributes) -> None:
        for name, value in other.values.items():
            taken = value.clone() if isinstance(value, Tensor) else copy.copy(value)
            setattr(self._owner, name, taken)


def _as_tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, bool | int):
        return torch.tensor(value)
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64)
    if isinstance(value, list | set):
        try:
            return torch.tensor(sorted(value) if isinstance(value, set) else value)
        except (TypeError, ValueError, RuntimeError):
            kind = type(value).__name__
            raise TypeError(
                f"{name} is a {kind} of other things than numbers, and cannot be saved: use one "
                "tensor with a row for each (torch.stack), or a Stateful object"
            ) from None
    raise TypeError(
        f"{name} is a {type(value).__name__}, which cannot be saved: use a number, a tensor, a "
        "list or set of numbers, or a Stateful object"
    )


class Parts(Stateful):
    """Several of them under their names; the name "" adds nothing to the keys of a state.

    Parameters
    ----------
    parts
        Name → part.
    """

    def __init__(self, parts: Mapping[str, Stateful]) -> None:
        self.parts = parts

    def mark(self) -> dict[str, Any]:
        return {name: part.mark() for name, part in self.parts.items()}

    def undo(self, mark: dict[str, Any]) -> None:
        for name, part in self.parts.items():
            part.undo(mark[name])

    def state(self) -> dict[str, Tensor]:
        return {
            ".".join(filter(None, (name, key))): value
            for name, part in self.parts.items()
            for key, value in part.state().items()
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, part in self.parts.items():
            if not name:
                part.load_state(state)
                continue
            own = {k[len(name) + 1 :]: v for k, v in state.items() if k.startswith(f"{name}.")}
            part.load_state(own | ({"": state[name]} if name in state else {}))

    def follow(self, other: Parts) -> None:
        for name, part in self.parts.items():
            part.follow(other.parts[name])
