"""What is in a map, and how much it counts where."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from verse.backbones.outputs import Positions, UnitLength, unit_rows

# all of it; above − below; left − right; one diagonal − the other
_SIGNS = ((1, 1, 1, 1), (1, 1, -1, -1), (1, -1, 1, -1), (1, -1, -1, 1))


class GridFeatures:
    """The means over the quarters of a map [n, c, h, w] (the middle of an odd side belongs to
    both), of unit length, as their sum and ``s`` times their three differences: [n, c · 4].

    A covariance that is shrunk towards one variance for all values trusts the differences the less
    the smaller ``s`` is: 0 is what is in the picture, 1 counts as much where it is. Anything but a
    map of at least 2 × 2 positions stays as it is, flat.

    Parameters
    ----------
    z_shape
        A feature's shape.
    s
        Weight of the differences between positions, relative to their sum.
    channels_last
        Whether maps come as [n, h, w, c]; ``module`` takes [n, c, h, w] all the same.
    device
        Where to compute; None: on the processor.

    >>> GridFeatures((3, 2, 2), s=0.5)(torch.ones(1, 3, 2, 2))[0, :3].tolist()
    [0.5773502588272095, 0.0, 0.0]
    """

    def __init__(
        self,
        z_shape: tuple[int, ...],
        *,
        s: float,
        channels_last: bool = False,
        device: torch.device | None = None,
    ) -> None:
        self._channels_last = channels_last
        self.maps = len(z_shape) == 3 and min(z_shape[1:]) >= 2
        self.module: nn.Module = nn.Flatten()
        self.d = int(torch.Size(z_shape).numel())
        self._mix: Tensor | None = None  # of what is a grid already: ``module`` by two operations
        self.positions = 1  # every so many values is one of what is in the picture
        if self.maps:
            channels, high, wide = z_shape
            pool: nn.Module = nn.Identity()  # a grid already
            if max(high, wide) > 2:
                pool = nn.AvgPool2d((-(-high // 2), -(-wide // 2)), (high // 2, wide // 2))
            mix = torch.tensor(_SIGNS) / 2 * torch.tensor([[1.0], [s], [s], [s]])
            mix = mix if device is None else mix.to(device)
            positions = Positions(mix)
            self._mix = mix.t() if isinstance(pool, nn.Identity) else None
            self.module = nn.Sequential(pool, nn.Flatten(), UnitLength(), positions)
            self.positions, self.d = len(_SIGNS), len(_SIGNS) * channels

    def __call__(self, z: Tensor) -> Tensor:
        """[n, d]."""
        if self._mix is not None and not self._channels_last:
            return (unit_rows(z.flatten(1)).view(len(z), -1, 4) @ self._mix).flatten(1)
        swapped = self._channels_last and z.dim() == 4
        e: Tensor = self.module(z.permute(0, 3, 1, 2) if swapped else z)
        return e

    def averages(self, z: Tensor) -> Tensor:
        """What is in the picture alone [n, c]: every so many (``positions``) of all values."""
        if self._mix is not None and not self._channels_last:
            return unit_rows(z.flatten(1)).view(len(z), -1, 4).sum(2).div_(2)
        return self(z)[:, :: self.positions]
