"""Closed-form classifiers on pooled features: what any Offline that works must not fall behind."""

from __future__ import annotations

import torch
from torch import Tensor

from verse.evaluate import Samples

BATCH = 256
SHRINKAGE = 0.1
RIDGES = (1e-2, 1e-1, 1.0, 10.0)  # relative to the mean eigenvalue


def pooled(samples: Samples) -> Tensor:
    """Features averaged over space, float64 [n, c]."""
    parts = []
    for start in range(0, len(samples), BATCH):
        z = samples.features(start, min(start + BATCH, len(samples))).double()
        parts.append(z.mean((2, 3)) if z.dim() == 4 else z.flatten(1))
    return torch.cat(parts)


def ridge(train: Tensor, y: Tensor, test: Tensor) -> Tensor:
    """Answers of a linear regression on one-hot targets; the penalty by generalised
    cross-validation (Golub, Heath and Wahba, 1979) on the training side.

    >>> x = torch.eye(2, dtype=torch.float64).repeat(4, 1)
    >>> ridge(x, torch.tensor([5, 7] * 4), x[:2]).tolist()
    [5, 7]
    """
    classes, target = torch.unique(y, return_inverse=True)
    mean, std = train.mean(0), train.std(0).clamp_min(1e-12)
    X, Y = (train - mean) / std, torch.nn.functional.one_hot(target).double()
    centre = Y.mean(0)
    Y = Y - centre
    n = len(X)
    values, vectors = torch.linalg.eigh(X.T @ X)
    values = values.clamp_min(0)
    rotated = vectors.T @ (X.T @ Y)
    total = Y.square().sum()
    best, answer = float("inf"), None
    for relative in RIDGES:
        penalty = relative * values.mean().clamp_min(1e-12)
        shrunk = 1 / (values + penalty)
        weights = shrunk[:, None] * rotated
        # ‖Y − XW‖² from the eigenvalues, so that no n × k residual is needed
        explained = (rotated.square() * (2 * shrunk - values * shrunk.square())[:, None]).sum()
        freedom = (values * shrunk).sum() + 1
        residual = (total - explained).clamp_min(1e-9 * total)  # rounding can pass below zero
        score = float(residual / (1 - freedom / (n + 1)).clamp_min(1e-3).square())
        if score < best:
            best, answer = score, vectors @ weights
    assert answer is not None
    scores = ((test - mean) / std) @ answer + centre
    answers: Tensor = classes[scores.argmax(1)]
    return answers


def lda(train: Tensor, y: Tensor, test: Tensor) -> Tensor:
    """Answers of linear discriminant analysis: class means and one shrunk covariance.

    >>> x = torch.tensor([[0.0, 1], [0, 2], [1, 1], [1, 2]], dtype=torch.float64)
    >>> lda(x, torch.tensor([3, 3, 4, 4]), x).tolist()
    [3, 3, 4, 4]
    """
    classes, target = torch.unique(y, return_inverse=True)
    onehot = torch.nn.functional.one_hot(target).double()
    means = (onehot.T @ train) / onehot.sum(0)[:, None]
    X = train - means[target]
    covariance = X.T @ X / len(X)
    d = len(covariance)
    scale = covariance.diagonal().mean().clamp_min(1e-12)
    covariance = (1 - SHRINKAGE) * covariance + SHRINKAGE * scale * torch.eye(d).double()
    weights = torch.linalg.solve(covariance, means.T)  # [d, k]
    bias = (onehot.mean(0)).log() - 0.5 * (means.T * weights).sum(0)
    answers: Tensor = classes[(test @ weights + bias).argmax(1)]
    return answers
