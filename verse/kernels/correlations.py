"""Correlations of values, and the metric in which values with these correlations have none."""

from __future__ import annotations

import torch
from torch import Tensor


def shrink_twofold(covariance: Tensor, gamma1: float, gamma2: float) -> Tensor:
    """Σ + γ₁ V₁ I + γ₂ V₂ (1 − I), with V₁ the mean of Σ's diagonal and V₂ that of the rest.

    Positive definite if γ₁ > γ₂, or if γ₁ = γ₂ and not all values are the same.

    >>> shrink_twofold(torch.tensor([[2.0, 1.0], [1.0, 2.0]]), 1.0, 0.5).tolist()
    [[4.0, 1.5], [1.5, 4.0]]
    """
    d = len(covariance)
    own = covariance.diagonal().mean()
    others = (covariance.sum() - own * d) / max(1, d * d - d)
    shrunk = covariance + gamma2 * others
    shrunk.diagonal().add_(gamma1 * own - gamma2 * others)
    return shrunk


def whiten_correlations(covariance: Tensor) -> Tensor:
    """W with W Wᵀ = the (pseudo-)inverse of the correlations; the identity if a variance is zero.

    ‖δᵀ W‖² is then the squared Mahalanobis distance of δ by the correlations. In float64 inside.

    >>> whiten_correlations(torch.diag(torch.tensor([4.0, 9.0]))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    d, device = len(covariance), covariance.device
    S = covariance.cpu().double()
    deviation = S.diagonal().clamp(min=0).sqrt()
    if not bool(deviation.all()):  # one sample, or all the same: nothing is known of the spread
        return torch.eye(d, device=device)
    R = S / deviation.outer(deviation)
    W: Tensor
    L, failed = torch.linalg.cholesky_ex(R)
    if int(failed):  # not positive definite to working precision
        values, vectors = torch.linalg.eigh(R)
        W = vectors * torch.where(values > 1e-9 * values[-1], values, torch.inf).rsqrt()
    else:
        W = torch.linalg.solve_triangular(L, torch.eye(d, dtype=S.dtype), upper=False).t()
    return W.float().to(device)
