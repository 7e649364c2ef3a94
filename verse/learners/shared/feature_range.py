"""How large the values of features are, so that one far outside is not learned."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from verse.stateful import Stateful
from verse.types import Refused

LARGEST_JUMP = 1e4
"""How many times the largest value so far a new one may be."""


class FeatureRange(Stateful):
    """The largest absolute value in the features so far, and a bound that follows from it.

    A single feature of 1e15 is finite. But in memory it would make the loss of every later step
    infinite, so that nothing could be learned any more. Values up to 1 count as 1: a first frame
    that is black tells nothing.

    >>> bound = FeatureRange()
    >>> bound.add(torch.tensor([0.5, -3.0]))
    >>> bound.largest
    3.0
    >>> bound.add(torch.tensor([1e15]))
    Traceback (most recent call last):
    verse.types.Refused: a value of 1e+15 is far from all features so far (at most 3); nothing was
    learned
    """

    def __init__(self) -> None:
        self.largest: float | None = None

    def add(self, z: Tensor) -> None:
        """One more feature; refuses what is not finite or too far from the others."""
        least, most = torch.aminmax(z)
        value = max(abs(float(least)), abs(float(most)))
        if not math.isfinite(value):
            raise Refused("the feature is not finite; nothing was learned")
        if self.largest is not None and value > LARGEST_JUMP * max(self.largest, 1.0):
            raise Refused(
                f"a value of {value:.6g} is far from all features so far (at most "
                f"{self.largest:.6g}); nothing was learned"
            )
        self.largest = value if self.largest is None else max(self.largest, value)

    def mark(self) -> float | None:
        return self.largest

    def undo(self, mark: float | None) -> None:
        self.largest = mark

    def state(self) -> dict[str, Tensor]:
        return {} if self.largest is None else {"": torch.tensor(self.largest, dtype=torch.float64)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.largest = float(state[""]) if "" in state else None  # files of before have none

    def follow(self, other: FeatureRange) -> None:
        self.largest = other.largest
