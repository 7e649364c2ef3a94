"""Linear discriminant analysis in closed form."""

from __future__ import annotations

import torch
from torch import Tensor


def lda(means: Tensor, covariance: Tensor, shrinkage: float) -> tuple[Tensor, Tensor]:
    """(weight [n, d], bias [n]) of linear discriminant analysis with equal priors.

    With Λ = ((1 − ε) Σ + ε I)⁻¹, weights are W = Λ μ and biases −½ μ·W. Solved in float64, since
    Σ is nearly singular while there are fewer samples than dimensions.

    >>> weight, bias = lda(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.eye(2), 0.1)
    >>> weight.tolist(), bias.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [-0.5, -0.5])
    """
    M = means.cpu().double()
    A = covariance.cpu().double().mul_(1 - shrinkage)
    A.diagonal().add_(shrinkage)
    L, failed = torch.linalg.cholesky_ex(A)
    if int(failed):  # not positive definite to working precision
        W = M @ torch.linalg.pinv(A, hermitian=True)
    else:
        W = torch.cholesky_solve(M.t(), L).t()
    bias = -0.5 * (M * W).sum(1)
    return W.float().to(means.device), bias.float().to(means.device)


def oas(covariance: Tensor, n: int) -> float:
    """The share of the mean variance that a covariance of ``n`` samples should be shrunk by.

    Y. Chen, A. Wiesel, Y. Eldar, A. Hero, "Shrinkage algorithms for MMSE covariance estimation",
    IEEE Transactions on Signal Processing 2010: the oracle approximating shrinkage.

    >>> round(oas(torch.diag(torch.tensor([3.0, 1.0])), 50), 3)
    0.16
    >>> oas(torch.eye(2), 50)
    1.0
    """
    d = covariance.shape[0]
    squares = float(covariance.square().sum())
    trace = float(covariance.diagonal().sum()) ** 2
    unequal = (n + 1 - 2 / d) * (squares - trace / d)
    return min(1.0, ((1 - 2 / d) * squares + trace) / unequal) if unequal > 0 else 1.0


def within_class(E: Tensor, y: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """(means [n, d], pooled covariance around them [d, d]) of a batch, in float64."""
    E = E.double()
    count = torch.bincount(y, minlength=n).clamp(min=1).unsqueeze(1)
    means = torch.zeros(n, E.shape[1], dtype=E.dtype, device=E.device).index_add_(0, y, E) / count
    centred = E - means[y]
    return means, centred.t() @ centred / len(y)
