"""A map summed up by its four quarters: what is in it, and roughly where."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from verse.backbones.outputs import UnitLength
from verse.kernels.moments import Moments

# all of it; above − below; left − right; one diagonal − the other
_SIGNS = ((1, 1, 1, 1), (1, 1, -1, -1), (1, -1, 1, -1), (1, -1, -1, 1))


class Quarters:
    """The means over the quarters of a map [n, c, h, w] (the middle of an odd side belongs to
    both), of unit length, as ``blocks`` of c values: the sum and the three differences.

    Anything but a map of at least 2 × 2 positions is one block, as it is. ``channels_last`` says
    that maps come as [n, h, w, c]; ``module`` takes [n, c, h, w] all the same.

    >>> Quarters((3, 7, 7))(torch.ones(1, 3, 7, 7))[0, :, 0].tolist()
    [0.5773502588272095, 0.0, 0.0, 0.0]
    """

    def __init__(self, z_shape: tuple[int, ...], *, channels_last: bool = False) -> None:
        self._channels_last = channels_last
        self.maps = len(z_shape) == 3 and min(z_shape[1:]) >= 2
        self.blocks = len(_SIGNS) if self.maps else 1
        self.d = z_shape[0] if self.maps else int(torch.Size(z_shape).numel())
        if self.maps:
            _, high, wide = z_shape
            pool = nn.AvgPool2d((-(-high // 2), -(-wide // 2)), (high // 2, wide // 2))
            self.module = nn.Sequential(pool, nn.Flatten(), UnitLength())
        else:
            self.module = nn.Sequential(nn.Flatten())

    def __call__(self, z: Tensor) -> Tensor:
        """[n, blocks, d]."""
        rows = self.rows(z)
        if not self.maps:
            return rows.unsqueeze(1)
        return torch.einsum("ncq,bq->nbc", rows.view(len(rows), self.d, 4), _signs(rows))

    def rows(self, z: Tensor) -> Tensor:
        """What ``module`` gives: the quarters themselves."""
        swapped = self._channels_last and z.dim() == 4
        rows: Tensor = self.module(z.permute(0, 3, 1, 2) if swapped else z)
        return rows

    def classifier(
        self, moments: Moments, shrinkage: float, temperature: float
    ) -> tuple[Tensor, Tensor]:
        """(weight, bias) of the discriminant analysis of the blocks as one of ``rows``. Posteriors
        in hundreds of dimensions are far too sure of themselves: divided by T √D they are softer.
        """
        weight, bias = moments.classifier(shrinkage, relative=True)
        softened = temperature * weight.shape[1] ** 0.5
        return self._of_rows(weight) / softened, bias / softened

    def _of_rows(self, of_blocks: Tensor) -> Tensor:
        if not self.maps:
            return of_blocks
        blocks = of_blocks.view(len(of_blocks), self.blocks, self.d)
        return torch.einsum("kbc,bq->kcq", blocks, _signs(of_blocks)).flatten(1)


def _signs(like: Tensor) -> Tensor:
    return torch.tensor(_SIGNS, dtype=like.dtype, device=like.device) / 2
