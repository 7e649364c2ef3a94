"""A sample to learn, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from verse.durable.entry import checksum
from verse.labels import check_label
from verse.types import Label, Prediction


@dataclass(frozen=True, slots=True)
class Lesson:
    """One sample to learn: its feature and label, an idempotency key, pictures to keep with it,
    and the content that the key stands for (None: the feature).

    An invalid label is refused here, and nowhere later.

    Parameters
    ----------
    z
        The feature.
    label
        Of the class.
    key
        An idempotency key: a repeated one is learned once.
    images
        Pictures to keep with it, by name.
    content
        What the key stands for; None: the feature.

    >>> import torch
    >>> Lesson(torch.ones(3), "mug", key="request 7").label
    'mug'
    """

    z: Tensor
    label: Label
    key: str | None = None
    images: Mapping[str, bytes] | None = None
    content: bytes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", check_label(self.label))

    def digest(self, z: bytes) -> bytes:
        """What its key is bound to: the label, and the content or else the feature."""
        return checksum(self.label, z if self.content is None else self.content)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a lesson. ``repeated``: its key was learned before, nothing was done.

    Parameters
    ----------
    seq
        Its sequence number.
    repeated
        Its key was learned before; nothing was done.
    guess
        The answer before it was learned.
    error
        Why it was refused.

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
