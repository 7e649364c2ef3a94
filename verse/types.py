"""The nouns that cross folders: samples, batches, predictions, and the errors a user can meet.

Importing this file never imports torch, so that ``import verse`` stays instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import os

    import numpy as np
    import numpy.typing as npt
    import PIL.Image
    from torch import Tensor

Label: TypeAlias = str | int
"""What a user calls a class: any non-empty string or any integer."""

DISTRIBUTION = "verse-stream"
"""What pip installs; the name ``verse`` on the package index belongs to another project."""


Image: TypeAlias = (
    "str | os.PathLike[str] | bytes | bytearray | memoryview | PIL.Image.Image"
    " | npt.NDArray[np.generic] | Tensor | Sequence[float]"
)
"""What ``learn_one`` and ``predict`` take: a path, an encoded image (JPEG, PNG, …) as bytes, a PIL
image, a numpy array (H×W or H×W×1/3/4; uint8, uint16, or floats from 0 to 1) or a torch tensor
(C×H×W, H×W×C or H×W). Without a network in front (``backbones.identity``) it is a feature: an
array, a tensor or a sequence of numbers. ``verse.images`` says what becomes of awkward cases."""


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
        super().__init__(f"this needs the package {package}: pip install '{DISTRIBUTION}[{extra}]'")


class Refused(VerseError):
    """The sample was not learned; the learner is exactly as it was before."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows drawn from a memory: features, outputs, and any further named fields.

    Parameters
    ----------
    z
        Features [n, …].
    y
        Outputs [n].
    extra
        Further fields by name, [n, …] each.

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

    Parameters
    ----------
    label
        The likeliest class; None before anything was learned.
    probabilities
        Of every known label.
    step
        How many samples had been learned.

    >>> Prediction("mug", {"mug": 0.9, "cup": 0.1}, step=12).confidence
    0.9
    """

    label: Label | None
    probabilities: Mapping[Label, float]
    step: int

    def __repr__(self) -> str:
        """Without the probabilities, of which there may be hundreds."""
        return (
            f"Prediction({self.label!r}, confidence={self.confidence:.4f}, step={self.step}, "
            f"{len(self.probabilities)} classes)"
        )

    @property
    def confidence(self) -> float:
        """The probability of the answer, 0 before anything was learned."""
        return 0.0 if self.label is None else self.probabilities[self.label]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that may be "I don't know".

    Parameters
    ----------
    label
        The class; None for something unknown, and before anything was learned.
    nearest
        The likeliest class, known or not.
    known
        Whether the image fits anything that was taught.
    novelty
        How unusual it is: 0 like the frames taught, above 1 unknown.
    probabilities
        Of every known label, given that it is one of them.
    step
        How many samples had been learned.

    >>> Answer(None, "mug", False, 3.2, {"mug": 0.9, "cup": 0.1}, step=12).confidence
    0.9
    """

    label: Label | None
    nearest: Label | None
    known: bool
    novelty: float
    probabilities: Mapping[Label, float]
    step: int

    @property
    def confidence(self) -> float:
        """The probability of the nearest class, 0 before anything was learned."""
        return 0.0 if self.nearest is None else self.probabilities[self.nearest]
