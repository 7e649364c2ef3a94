"""Many random features of a few fixed ones: what is not linear in those is in these."""

from __future__ import annotations

import math
from typing import Annotated

from torch import nn

from verse.backbones.outputs import Cosine, UnitLength, make_linear
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
    layers = nn.Sequential(UnitLength(), make_linear(weight, weight.new_zeros(M)), nn.ReLU())
    return layers.requires_grad_(False)


def fourier_features(d: int, M: int, gamma: float, *, seed: int) -> nn.Sequential:
    """√(2/M) cos(Ω e + b) [n, M] of features e [n, d] scaled to length one, with Ω normal of
    variance 2 γ and b uniform in [0, 2 π): the inner product of two such rows is about
    exp(−γ ‖e − e'‖²), the better the larger M is. They follow from the seed and need not be saved.

    A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007.

    >>> import torch
    >>> fourier_features(2, 4, 1.0, seed=0)(torch.ones(3, 2)).shape
    torch.Size([3, 4])
    """
    random = Random(seed, PURPOSE)
    weight = random.normal_tensor((M, d)) * math.sqrt(2 * gamma)
    bias = random.uniform_tensor((M,), 0, 2 * math.pi)
    layers = nn.Sequential(UnitLength(), make_linear(weight, bias), Cosine(math.sqrt(2 / M)))
    return layers.requires_grad_(False)
