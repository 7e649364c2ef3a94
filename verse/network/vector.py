"""All parameters of a network as one vector: an update, a norm, a copy is one operation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from verse.kernels.randomness import Random
from verse.network.plastic import head_capacity
from verse.stateful import PerClass

# Every parameter starts on a 64-byte boundary: the bits of a matrix product depend on alignment,
# so alignment must follow from the layout, never from how the tensor came to be.
ALIGNMENT = 16

Order: TypeAlias = Literal["plain", "channels-last", "taps-first"]
"""How weights [out, in, h, w] lie: in this order, as [out, h, w, in], or as [h, w, in, out]."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one parameter lies in the vector."""

    name: str
    shape: tuple[int, ...]
    offset: int
    order: Order

    @property
    def length(self) -> int:
        return prod(self.shape)

    def view(self, flat: Tensor) -> Tensor:
        """The parameter as a view of ``flat``; writing to it writes to the vector."""
        piece = flat[self.offset : self.offset + self.length]
        if self.order == "plain":
            return piece.view(self.shape)
        out, into, high, wide = self.shape
        if self.order == "taps-first":
            return piece.view(high, wide, into, out).permute(3, 2, 0, 1)
        return piece.view(out, high, wide, into).permute(0, 3, 1, 2)


class Layout:
    """The places of all parameters in one vector.

    Parameters
    ----------
    parameters
        (name, shape) of each, in order.
    channels_last
        Weights of convolutions lie as [out, h, w, in].
    taps_first
        Names of weights that lie as [h, w, in, out].

    >>> layout = Layout([("weight", (2, 3)), ("bias", (2,))])
    >>> layout.size
    32
    """

    def __init__(
        self,
        parameters: Iterable[tuple[str, tuple[int, ...]]],
        *,
        channels_last: bool = False,
        taps_first: Collection[str] = (),
    ) -> None:
        slots, offset = [], 0
        for name, shape in parameters:
            order: Order = "channels-last" if channels_last and len(shape) == 4 else "plain"
            slots.append(Slot(name, shape, offset, "taps-first" if name in taps_first else order))
            offset += -(-prod(shape) // ALIGNMENT) * ALIGNMENT
        self.slots = tuple(slots)
        self.size = offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.slots == other.slots

    def __hash__(self) -> int:
        return hash(self.slots)

    def for_classes(self, classes: int) -> Layout:
        """The same for a head with this number of classes; its weights and biases come last."""
        rows = head_capacity(classes)
        if rows == self.slots[-1].shape[0]:
            return self
        *body, weight, bias = ((slot.name, slot.shape) for slot in self.slots)
        return Layout(
            [*body, *((name, (rows, *shape[1:])) for name, shape in (weight, bias))],
            channels_last=any(slot.order == "channels-last" for slot in self.slots),
            taps_first={slot.name for slot in self.slots if slot.order == "taps-first"},
        )

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        return {slot.name: slot.view(flat) for slot in self.slots}

    def zeros(self, device: torch.device) -> Tensor:
        return torch.zeros(self.size, device=device)

    def move_from(self, old: Layout, flat: Tensor) -> Tensor:
        """``flat`` in this layout: every parameter keeps the rows that fit, new ones are zero."""
        fresh = self.zeros(flat.device)
        for before, after in zip(old.slots, self.slots, strict=True):
            rows = min(before.shape[0], after.shape[0])
            after.view(fresh)[:rows].copy_(before.view(flat)[:rows])
        return fresh


class Vector(PerClass):
    """A value per parameter (weights, their average, an importance, …) that grows with the head.

    Parameters
    ----------
    layout
        The places of the parameters.
    device
        Where it lies.

    >>> layout = Layout([("weight", (2, 3))])
    >>> Vector(layout, torch.device("cpu")).data.shape
    torch.Size([16])
    """

    def __init__(self, layout: Layout, device: torch.device) -> None:
        self.layout = layout
        self.data = layout.zeros(device)

    def move_to(self, layout: Layout) -> None:
        """Take another layout after the head has grown; the old storage is left untouched."""
        if layout != self.layout:
            self.data = layout.move_from(self.layout, self.data)
            self.layout = layout

    def add_class(self, classes: int, row: Tensor) -> None:
        self.move_to(self.layout.for_classes(classes))

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        self._close_row(output)
        self.move_to(self.layout.for_classes(classes))
        return 0

    def _close_row(self, output: int) -> None:
        for slot in self.layout.slots[-2:]:
            rows = slot.view(self.data)
            rows[output:-1] = rows[output + 1 :].clone()
            rows[-1] = 0

    def mark(self) -> Any:
        return self.layout, self.data

    def undo(self, mark: Any) -> None:
        self.layout, self.data = mark

    def state(self) -> dict[str, Tensor]:
        return {slot.name: slot.view(self.data) for slot in self.layout.slots}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.move_to(self.layout.for_classes(state[self.layout.slots[-1].name].shape[0]))
        self.data.zero_()
        for slot in self.layout.slots:
            slot.view(self.data).copy_(state[slot.name])

    def follow(self, other: Any) -> None:
        self.move_to(other.layout)
        self.data.copy_(other.data)


def stochastic_ema(
    pairs: Iterable[tuple[Tensor, Tensor]], *, gamma: float, r: float, random: Random
) -> bool:
    """With probability r: Φ ← γ Φ + (1 − γ) θ for every pair (Φ, θ), in place (semantic memory).

    Returns whether Φ moved. One number is drawn either way, so that runs with different r see the
    same stream of random numbers.

    >>> phi, theta = torch.zeros(2), torch.ones(2)
    >>> stochastic_ema([(phi, theta)], gamma=0.75, r=1.0, random=Random(0))
    True
    >>> phi.tolist()
    [0.25, 0.25]
    """
    if random.uniform() >= r:
        return False
    for phi, theta in pairs:
        phi.lerp_(theta, 1 - gamma)
    return True
