"""Many random features of a few fixed ones: what is not linear in those is in these."""

from __future__ import annotations

import math
from typing import Annotated

from torch import nn

from verse.backbones.outputs import UnitLength, linear
from verse.kernels.randomness import Random
from verse.settings import about

PURPOSE = 3  # tells these numbers from others of the same seed
Count = Annotated[int, about("random features", least=1)]


def rectified_features(d: int, M: int, *, seed: int) -> nn.Sequential:
    """√(2/M) max(0, R e) [n, M] of features e [n, d] scaled to length one, with R standard normal:
    of length one on average. R follows from the seed and need not be saved.

    >>> import torch
    >>> rectified_features(2, 4, seed=0)(torch.ones(3, 2)).shape
    torch.Size([3, 4])
    """
    weight = Random(seed, PURPOSE).normal_tensor((M, d)) * math.sqrt(2 / M)
    layers = nn.Sequential(UnitLength(), linear(weight, weight.new_zeros(M)), nn.ReLU())
    return layers.requires_grad_(False)
