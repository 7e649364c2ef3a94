"""Random resized crops of feature maps, all of a batch at once."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verse.kernels.randomness import Random

ATTEMPTS = 10
RATIO = 4 / 3  # a crop is at most this much wider than high, or higher than wide

Ints = npt.NDArray[np.int64]


def random_boxes(
    n: int, height: int, width: int, *, smallest: float, random: Random
) -> tuple[Ints, Ints, Ints, Ints]:
    """(top, left, height, width) of ``n`` crops whose area is uniform from ``smallest`` to 1.

    A size that does not fit is drawn again, at most ten times; after that the crop is everything.

    >>> top, left, high, wide = random_boxes(5, 7, 7, smallest=0.3, random=Random(0))
    >>> bool(((top + high <= 7) & (left + wide <= 7) & (high > 0)).all())
    True
    """
    draws = random.numpy.random((4, n, ATTEMPTS))
    area = (smallest + (1 - smallest) * draws[0]) * height * width
    ratio = np.exp((2 * draws[1] - 1) * math.log(RATIO))
    high = np.maximum(1, np.rint(np.sqrt(area / ratio))).astype(np.int64)
    wide = np.maximum(1, np.rint(np.sqrt(area * ratio))).astype(np.int64)
    fits = (high <= height) & (wide <= width)
    rows, first = np.arange(n), fits.argmax(1)
    fitting = fits[rows, first]
    high = np.where(fitting, high[rows, first], height)
    wide = np.where(fitting, wide[rows, first], width)
    top = (draws[2, :, 0] * (height - high + 1)).astype(np.int64)
    left = (draws[3, :, 0] * (width - wide + 1)).astype(np.int64)
    return top, left, high, wide


def stretch(start: Ints, length: Ints, size: int) -> Tensor:
    """Matrices [n, size, size] that take ``length`` values from ``start`` to ``size``, linearly.

    Pixel centres are aligned and borders repeated, as bilinear resizing of a crop does.

    >>> stretch(np.array([0]), np.array([2]), 2)[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    at = (np.arange(size) + 0.5) * (length[:, None] / size) - 0.5
    at = np.clip(at, 0, length[:, None] - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, length[:, None] - 1)
    share = (at - low)[:, :, None]
    place, row = np.arange(size), start[:, None, None]
    matrix = (1 - share) * (place == low[:, :, None] + row) + share * (
        place == high[:, :, None] + row
    )
    return torch.from_numpy(matrix.astype(np.float32))


def random_resized_crops(maps: Tensor, *, smallest: float, random: Random) -> Tensor:
    """Each map [h, w, c] of a batch cropped at random and resized to its old size.

    >>> random_resized_crops(torch.ones(2, 7, 7, 3), smallest=0.3, random=Random(0)).unique()
    tensor([1.])
    """
    n, height, width, _ = maps.shape
    top, left, high, wide = random_boxes(n, height, width, smallest=smallest, random=random)
    down = stretch(top, high, height).to(maps.device)
    across = stretch(left, wide, width).to(maps.device)
    maps = torch.bmm(down, maps.reshape(n, height, -1)).view(maps.shape)
    return torch.matmul(across.unsqueeze(1), maps)
