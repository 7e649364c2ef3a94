"""The nouns that cross folders: samples, batches, predictions, and the errors a user can meet.

Importing this file never imports torch, so that ``import verse`` stays instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

Label: TypeAlias = str | int
"""What a user calls a class: any non-empty string or any integer."""


class VerseError(ValueError):
    """Something the user can mend; the message says how. The command line exits with 2."""


class BadImage(VerseError):
    """The image cannot be read, or is not an image."""


class BadLabel(VerseError):
    """The label is empty, unhashable or not a string or integer."""


class BadSetting(VerseError):
    """An option, a name or a hyper-parameter is not valid."""


class BadState(VerseError):
    """A saved state is damaged, of another version, or of another learner."""


class BadData(VerseError):
    """A data set is missing, incomplete or not what its name says."""


class MissingExtra(VerseError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs the package {package}: pip install 'verse[{extra}]'")


class Refused(VerseError):
    """The sample was not learned; the learner is exactly as it was before."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled feature: what a learner sees at one moment.

    >>> import torch
    >>> Sample(torch.zeros(4), 1).y
    1
    """

    z: Tensor
    y: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows drawn from a memory: features, outputs, and any further named fields.

    >>> import torch
    >>> len(Batch(torch.zeros(3, 4), torch.tensor([0, 1, 1])))
    3
    """

    z: Tensor
    y: Tensor
    extra: Mapping[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.y.shape[0])


@dataclass(frozen=True, slots=True)
class Prediction:
    """An answer: the label, the probability of every known label, and the step it comes from.

    >>> Prediction("mug", {"mug": 0.9, "cup": 0.1}, step=12).confidence
    0.9
    """

    label: Label | None
    probabilities: Mapping[Label, float]
    step: int

    @property
    def confidence(self) -> float:
        """The probability of the answer, 0 before anything was learned."""
        return 0.0 if self.label is None else self.probabilities[self.label]
