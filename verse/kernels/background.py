"""All classes together as one Gaussian, for telling what is far from everything known."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Background:
    """The covariance within classes plus that of their means, around the mean of the means.

    Everything is counted from one origin. With M the means [K, d] and Σ the covariance within
    classes, ``row`` [K] is the mean over the rows of M Σ⁻¹Mᵀ less its own mean, ``size`` that
    mean, and ``inverse`` [K, K] what the covariance of the means, of rank K, takes to be added
    (M. Woodbury, Memorandum Report 42, Princeton 1950).

    >>> around = Background.of(torch.eye(2), torch.eye(2))
    >>> around.distances(torch.tensor([0.5]), torch.tensor([[0.5, 0.5]]))
    tensor([0.])
    """

    row: Tensor
    size: float
    inverse: Tensor

    @classmethod
    def of(cls, means: Tensor, whitened: Tensor) -> Background:
        """From M and M Σ⁻¹."""
        products = whitened @ means.t()
        row, classes = products.mean(0), len(means)
        size = float(row.mean())
        between = products - row - row[:, None] + size
        between.diagonal().add_(classes)
        return cls(row - size, size, torch.linalg.inv(between))

    def distances(self, own: Tensor, along: Tensor) -> Tensor:
        """Squared distances [n], from eᵀΣ⁻¹e [n] and e Σ⁻¹Mᵀ [n, K]."""
        mean = along.mean(1)
        along = along - mean[:, None] - self.row
        explained = ((along @ self.inverse) * along).sum(1)
        rest: Tensor = own - 2 * mean + self.size - explained
        return rest.clamp_(min=0)
