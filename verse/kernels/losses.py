"""Losses as functions of the scores that return (value, gradient with respect to the scores).

Closed forms spare the automatic differentiation of a handful of tiny operations, which on a light
head costs more than the mathematics. ``tests/kernels/test_losses.py`` checks each against autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

Loss: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""scores [n, classes] → (mean loss, d loss / d scores)."""


def cross_entropy(y: Tensor) -> Loss:
    """Mean over the batch of −log softmax(s)[y].

    >>> value, grad = cross_entropy(torch.tensor([0]))(torch.zeros(1, 2))
    >>> grad.tolist()
    [[-0.5, 0.5]]
    """

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        n = y.shape[0]
        log_p = torch.log_softmax(scores, 1)
        column = y.view(n, 1)
        grad = log_p.exp().scatter_add_(1, column, scores.new_full((n, 1), -1.0)).div_(n)
        return log_p.gather(1, column).mean().neg_(), grad

    return loss


def soft_cross_entropy(target: Tensor) -> Loss:
    """Mean over the batch of −Σ target · log softmax(s), for targets [n, classes] that sum to 1.

    >>> value, grad = soft_cross_entropy(torch.tensor([[0.75, 0.25]]))(torch.zeros(1, 2))
    >>> grad.tolist()
    [[-0.25, 0.25]]
    """

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(scores, 1)
        value = (target * log_p).sum().div_(-len(target))
        return value, log_p.exp().sub_(target).div_(len(target))

    return loss


def mse(target: Tensor, weight: float = 1.0) -> Loss:
    """weight × mean over the batch and all outputs of (s − target)².

    >>> value, grad = mse(torch.zeros(1, 2))(torch.ones(1, 2))
    >>> float(value), grad.tolist()
    (1.0, [[1.0, 1.0]])
    """

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        gap = scores - target
        value = gap.square().mean().mul_(weight)
        return value, gap.mul_(2 * weight / gap.numel())

    return loss


def ragged_mse(target: Tensor, width: Tensor, weight: float = 1.0) -> Loss:
    """weight × mean of (s − target)² over the first ``width[i]`` outputs of every row i.

    For targets [n, W] stored when the network had fewer outputs than now; what is right of
    ``width`` is never looked at.

    >>> loss = ragged_mse(torch.zeros(2, 4), torch.tensor([1.0, 2.0]))
    >>> value, grad = loss(torch.ones(2, 3))
    >>> float(value), grad.count_nonzero(1).tolist()
    (1.0, [1, 2])
    """

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        outputs = min(scores.shape[1], target.shape[1])
        there = torch.arange(outputs, device=scores.device) < width.view(-1, 1)
        gap = torch.zeros_like(scores)
        gap[:, :outputs] = torch.where(there, scores[:, :outputs] - target[:, :outputs], 0.0)
        count = max(1, int(there.sum()))
        return gap.square().sum().mul_(weight / count), gap.mul_(2 * weight / count)

    return loss


def binary_cross_entropy(target: Tensor) -> Loss:
    """Mean over the batch of the sum over outputs of −t log σ(s) − (1 − t) log(1 − σ(s)).

    >>> value, grad = binary_cross_entropy(torch.tensor([[1.0, 0.0]]))(torch.zeros(1, 2))
    >>> grad.tolist()
    [[-0.5, 0.5]]
    """

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        n = scores.shape[0]
        value = torch.nn.functional.softplus(scores).sub_(target * scores).sum().div_(n)
        return value, torch.sigmoid(scores).sub_(target).div_(n)

    return loss


def scale_loss(first: Loss, weight: float) -> Loss:
    """weight × loss.

    >>> scale_loss(mse(torch.zeros(1, 1)), 3.0)(torch.ones(1, 1))[0].item()
    3.0
    """

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        value, grad = first(scores)
        return value * weight, grad * weight

    return loss


def stack_losses(first: Loss, rows: int, second: Loss) -> Loss:
    """``first`` on the first ``rows`` rows plus ``second`` on the others, by one forward."""

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        value_a, grad_a = first(scores[:rows])
        value_b, grad_b = second(scores[rows:])
        return value_a + value_b, torch.cat((grad_a, grad_b))

    return loss


def add_losses(first: Loss, second: Loss) -> Loss:
    """The sum of two losses of the same scores."""

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        value_a, grad_a = first(scores)
        value_b, grad_b = second(scores)
        return value_a + value_b, grad_a + grad_b

    return loss


def differentiate(function: Callable[[Tensor], Tensor]) -> Loss:
    """Any scalar function of the scores, its gradient by autograd.

    >>> value, grad = differentiate(lambda s: s.square().sum())(torch.ones(1, 2))
    >>> grad.tolist()
    [[2.0, 2.0]]
    """

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            value = function(leaf)
            (grad,) = torch.autograd.grad(value, leaf)
        return value.detach(), grad

    return loss
