"""Two samples in one: CutMix on feature maps, mixup on plain feature vectors."""

from __future__ import annotations

import torch
from torch import Tensor

from verse.kernels.randomness import Random


def cutmix(Z: Tensor, random: Random, *, channels_last: bool) -> tuple[Tensor, Tensor, float]:
    """(mixed features, partner of each row, share λ of each row's own label).

    S. Yun et al., "CutMix: regularization strategy to train strong classifiers with localizable
    features", ICCV 2019, with λ ~ U(0, 1): a box of 1 − λ of the area comes from the partner, and
    λ becomes the share that is left. A vector has no area: it is mixed as λ z + (1 − λ) z',
    H. Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018.

    >>> Z, partner, share = cutmix(torch.eye(2), Random(0), channels_last=False)
    >>> Z.shape, len(partner), 0 <= share <= 1
    (torch.Size([2, 2]), 2, True)
    """
    n, share = Z.shape[0], random.uniform()
    partner = torch.from_numpy(random.numpy.permutation(n)).to(Z.device)
    if Z.dim() != 4:
        return torch.lerp(Z[partner], Z, share), partner, share
    high, wide = Z.shape[1:3] if channels_last else Z.shape[2:4]
    top, bottom = _span(high, share, random)
    left, right = _span(wide, share, random)
    maps = Z.clone() if channels_last else Z.permute(0, 2, 3, 1).clone()
    other = Z[partner] if channels_last else Z[partner].permute(0, 2, 3, 1)
    maps[:, top:bottom, left:right] = other[:, top:bottom, left:right]
    mixed = maps if channels_last else maps.permute(0, 3, 1, 2).contiguous()
    return mixed, partner, 1 - (bottom - top) * (right - left) / (high * wide)


def _span(length: int, share: float, random: Random) -> tuple[int, int]:
    """A random stretch of √(1 − share) of the length, cut off at the ends."""
    half = int(length * (1 - share) ** 0.5) / 2
    centre = random.below(length)
    return max(0, round(centre - half)), min(length, round(centre + half))
