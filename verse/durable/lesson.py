"""What a durable classifier learns at one go, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from verse.types import Label, Prediction


@dataclass(frozen=True, slots=True)
class Lesson:
    """One sample to learn: its feature and label, an idempotency key, pictures to keep with it.

    >>> import torch
    >>> Lesson(torch.ones(3), "mug", key="request 7").label
    'mug'
    """

    z: Tensor
    label: Label
    key: str | None = None
    images: Mapping[str, bytes] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a lesson. ``repeated``: its key was learned before, nothing was done.

    >>> Outcome(7).learned, Outcome(7, repeated=True).learned
    (True, False)
    """

    seq: int
    repeated: bool = False
    guess: Prediction | None = None
    error: Exception | None = None

    @property
    def learned(self) -> bool:
        """Is it a new sample now?"""
        return not self.repeated and self.error is None
