"""From any image to a network's input: crop the centre square, resize, and (inside G) normalise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from verse.images import INTERPOLATIONS as INTERPOLATIONS
from verse.images import Square, rgb

Preprocessor: TypeAlias = Callable[[object], npt.NDArray[np.generic]]
"""One image, as the user hands it over, to the input array of the network (without batch)."""

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocess:
    """The centre square of an image at ``size`` pixels, as uint8 [size, size, 3].

    Parameters
    ----------
    size
        Pixels of the square.
    crop
        The share of the short side that the square keeps (ImageNet's habit is 224/256).
    mean, std
        Of pixels in [0, 1]. ``Normalise`` applies them inside G, so that a prepared image is a
        quarter of the size when it travels between processes.
    interpolation
        How pixels are resized: "bicubic", "bilinear", "nearest", "lanczos", "box" or "hamming".
    fit
        "crop" takes the centre square; "stretch" squeezes the whole image into the square.

    >>> Preprocess()(np.zeros((100, 300, 3), np.uint8)).shape
    (224, 224, 3)
    """

    size: int = 224
    crop: float = 1.0
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD
    interpolation: str = "bicubic"
    fit: str = "crop"

    def __repr__(self) -> str:
        """Part of keys: what is as by default and came later is not said, so that they stay."""
        later = "".join(
            f", {name}={value!r}"
            for name, value, usual in (
                ("interpolation", self.interpolation, "bicubic"),
                ("fit", self.fit, "crop"),
            )
            if value != usual
        )
        return (
            f"Preprocess(size={self.size!r}, crop={self.crop!r}, mean={self.mean!r}, "
            f"std={self.std!r}{later})"
        )

    def __call__(self, image: object) -> npt.NDArray[np.uint8]:
        return self.square.cut(rgb(image, at_least=self.square.at_least))

    @property
    def square(self) -> Square:
        """The geometry alone, for those who decode without torch."""
        return Square(self.size, self.crop, self.interpolation, self.fit)


class Normalise(nn.Module):
    """uint8 images [n, h, w, 3] to normalised float32 [n, 3, h, w], in channels-last memory.

    >>> black = torch.zeros(1, 2, 2, 3, dtype=torch.uint8)
    >>> Normalise((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))(black).unique()
    tensor([-1.])
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        m, s = torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64)
        self.register_buffer("scale", (1 / (255 * s)).float().view(-1, 1, 1))
        self.register_buffer("shift", (-m / s).float().view(-1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 3, 1, 2).to(torch.float32) * self.scale + self.shift
