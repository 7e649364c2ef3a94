"""Closed-form gradients against automatic differentiation."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as nnf

from verse.kernels import losses

SCORES = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([0, 1, 2, 3, 4, 0, 1])
TARGET = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        (losses.cross_entropy(Y), lambda s: nnf.cross_entropy(s, Y)),
        (losses.mse(TARGET, 0.3), lambda s: 0.3 * nnf.mse_loss(s, TARGET)),
        (
            losses.stack_losses(losses.cross_entropy(Y[:4]), 4, losses.mse(TARGET[4:], 0.3)),
            lambda s: nnf.cross_entropy(s[:4], Y[:4]) + 0.3 * nnf.mse_loss(s[4:], TARGET[4:]),
        ),
        (
            losses.add_losses(losses.cross_entropy(Y), losses.mse(TARGET)),
            lambda s: nnf.cross_entropy(s, Y) + nnf.mse_loss(s, TARGET),
        ),
    ],
    ids=["cross_entropy", "mse", "stacked", "added"],
)
def test_against_autograd(loss, plain) -> None:
    expected_value, expected = losses.differentiate(plain)(SCORES)
    value, grad = loss(SCORES.clone())
    torch.testing.assert_close(value, expected_value)
    torch.testing.assert_close(grad, expected)


def test_large_scores_stay_finite() -> None:
    value, grad = losses.cross_entropy(torch.tensor([0]))(torch.tensor([[1e4, -1e4]]))
    assert torch.isfinite(value) and torch.isfinite(grad).all()
