"""Features of any shape as maps [n, h, w, channels], and back."""

from __future__ import annotations

from math import prod

from torch import Tensor


class Maps:
    """How features of one shape are maps: anything but [channels, h, w] is a single position.

    ``channels_last`` says that maps are stored as [h, w, channels] already.

    >>> import torch
    >>> maps = Maps((8, 3, 2), channels_last=False)
    >>> Z = torch.randn(5, 8, 3, 2)
    >>> maps.of(Z).shape, torch.equal(maps.back(maps.of(Z)), Z)
    (torch.Size([5, 3, 2, 8]), True)
    """

    def __init__(self, z_shape: tuple[int, ...], *, channels_last: bool) -> None:
        flat = len(z_shape) != 3
        self.channels, high, wide = (prod(z_shape), 1, 1) if flat else z_shape
        self.shape = (high, wide, self.channels)
        self.positions = high * wide
        self._stored = z_shape if flat else self.shape
        self._swapped = not flat and not channels_last

    def of(self, Z: Tensor) -> Tensor:
        """Stored features as maps."""
        return Z.permute(0, 2, 3, 1) if self._swapped else Z.reshape(-1, *self.shape)

    def back(self, maps: Tensor) -> Tensor:
        """Maps as stored features."""
        if self._swapped:
            return maps.permute(0, 3, 1, 2).contiguous()
        return maps.reshape(-1, *self._stored)
