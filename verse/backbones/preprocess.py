"""From any image to a network's input: crop the centre square, resize, and (inside G) normalise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor, nn

from verse.images import rgb

Preprocessor: TypeAlias = Callable[[object], npt.NDArray[np.generic]]
"""One image, as the user hands it over, to the input array of the network (without batch)."""

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocess:
    """The centre square of an image at ``size`` pixels, as uint8 [size, size, 3].

    The square keeps ``crop`` of the short side (ImageNet's habit is 224/256). ``mean`` and ``std``
    (of pixels in [0, 1]) are applied by ``Normalise`` inside G, so a prepared image is a quarter
    of the size when it travels between processes.

    >>> Preprocess()(np.zeros((100, 300, 3), np.uint8)).shape
    (224, 224, 3)
    """

    size: int = 224
    crop: float = 1.0
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def __call__(self, image: object) -> npt.NDArray[np.uint8]:
        # a reduced JPEG must still cover the crop with at least `size` pixels
        pixels = rgb(image, at_least=round(self.size / self.crop))
        height, width, _ = pixels.shape
        side = min(height, width) * self.crop
        if height == width == self.size and self.crop == 1.0:
            return pixels
        left, top = (width - side) / 2, (height - side) / 2
        # resizing straight from a box: an extreme aspect ratio never makes a huge middle image
        square = Image.fromarray(pixels).resize(
            (self.size, self.size),
            Image.Resampling.BICUBIC,
            box=(left, top, left + side, top + side),
            reducing_gap=2.0,  # large images are first averaged down to twice the size or more
        )
        return np.asarray(square)


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
