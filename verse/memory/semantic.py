"""Semantic memory Φ: a slow average of a network's weights, moved now and then."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from verse.kernels.randomness import Random


def stochastic_ema(
    pairs: Iterable[tuple[Tensor, Tensor]], *, gamma: float, r: float, random: Random
) -> bool:
    """With probability r: Φ ← γ Φ + (1 − γ) θ for every pair (Φ, θ), in place.

    Returns whether Φ moved. One number is drawn either way, so that runs with different r see the
    same stream of random numbers.

    >>> import torch
    >>> phi, theta = torch.zeros(2), torch.ones(2)
    >>> stochastic_ema([(phi, theta)], gamma=0.75, r=1.0, random=Random(0))
    True
    >>> phi.tolist()
    [0.25, 0.25]
    """
    if random.uniform() >= r:
        return False
    for phi, theta in pairs:
        phi.lerp_(theta, 1 - gamma)
    return True
