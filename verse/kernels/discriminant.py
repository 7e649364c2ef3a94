"""Linear classifiers in closed form: discriminant analysis and ridge regression."""

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


def within_class(E: Tensor, y: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """(means [n, d], pooled covariance around them [d, d]) of a batch, in float64."""
    E = E.double()
    count = torch.bincount(y, minlength=n).clamp(min=1).unsqueeze(1)
    means = torch.zeros(n, E.shape[1], dtype=E.dtype, device=E.device).index_add_(0, y, E) / count
    centred = E - means[y]
    return means, centred.t() @ centred / len(y)


def lda_accuracy(
    E: Tensor, y: Tensor, E_test: Tensor, y_test: Tensor, *, shrinkage: float = 1e-4
) -> float:
    """Test accuracy of batch discriminant analysis on features [n, d]; labels are any integers.

    >>> E, y = torch.tensor([[0.0, 0.1], [0.1, 0.0], [1.0, 1.1], [1.1, 1.0]]), torch.ones(4).long()
    >>> y[:2] = 7
    >>> lda_accuracy(E, y, E, y)
    1.0
    """
    classes, outputs = torch.unique(y, return_inverse=True)
    means, covariance = within_class(E, outputs, len(classes))
    weight, bias = lda(means, covariance, shrinkage)
    return _accuracy(E_test @ weight.t() + bias, classes, y_test)


PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # relative to the mean eigenvalue


def ridge_accuracy(E: Tensor, y: Tensor, E_test: Tensor, y_test: Tensor) -> float:
    """Test accuracy of ridge regression from standardised features to one-hot labels.

    The penalty is chosen by generalised cross-validation on the training side (G. Golub, M. Heath,
    G. Wahba, Technometrics 1979).

    >>> E, y = torch.tensor([[0.0, 0.1], [0.1, 0.0], [1.0, 1.1], [1.1, 1.0]]), torch.ones(4).long()
    >>> y[:2] = 7
    >>> ridge_accuracy(E, y, E, y)
    1.0
    """
    classes, outputs = torch.unique(y, return_inverse=True)
    X = E.double()
    centre, scale = X.mean(0), X.std(0, correction=0) + 1e-6
    X = (X - centre) / scale
    T = torch.nn.functional.one_hot(outputs, len(classes)).double()
    Y = T - T.mean(0)
    values, vectors = torch.linalg.eigh(X.t() @ X)
    values = values.clamp_min(0)
    rotated = vectors.t() @ (X.t() @ Y)
    best, chosen = float("inf"), torch.zeros_like(rotated)
    for relative in PENALTIES:
        shrunk = 1 / (values + relative * values.mean().clamp_min(1e-12))
        # ‖Y − XW‖² from the eigenvalues, so that no n × k residual is needed
        explained = (rotated.square() * (2 * shrunk - values * shrunk.square())[:, None]).sum()
        freedom = (values * shrunk).sum() + 1
        left = (1 - freedom / (len(X) + 1)).clamp_min(1e-6)
        score = float((Y.square().sum() - explained) / left.square())
        if score < best:
            best, chosen = score, shrunk[:, None] * rotated
    W = vectors @ chosen
    return _accuracy((E_test.double() - centre) / scale @ W + T.mean(0), classes, y_test)


def _accuracy(scores: Tensor, classes: Tensor, y: Tensor) -> float:
    return float((classes[scores.argmax(1)] == y).double().mean())
