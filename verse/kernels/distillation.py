"""Distillation by softened probabilities."""

from __future__ import annotations

import torch
from torch import Tensor

from verse.kernels.losses import Loss


def tempered_cross_entropy(target: Tensor, temperature: float, weight: float = 1.0) -> Loss:
    """weight × mean over the batch of −Σ_k p_k log q_k over the target's outputs, where
    p = softmax(target / T), q = softmax(s / T). Outputs that the target lacks take no part.

    The gradient is weight / T · (q − p). There is no factor T², as in Li and Hoiem's loss.

    >>> value, grad = tempered_cross_entropy(torch.zeros(1, 2), 2.0)(torch.zeros(1, 3))
    >>> grad.tolist()
    [[0.0, 0.0, 0.0]]
    """
    p = torch.softmax(target / temperature, 1)
    n, known = p.shape

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        log_q = torch.log_softmax(scores[:, :known] / temperature, 1)
        grad = torch.zeros_like(scores)
        grad[:, :known] = (log_q.exp() - p) * (weight / (temperature * n))
        return (p * log_q).sum().mul(-weight / n), grad

    return loss
