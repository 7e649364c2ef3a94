"""The quadratic penalty of EWC++, MAS and SI: λ Σ Ω (θ − θ*)²."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def add_penalty(g: Tensor, theta: Tensor, anchor: Tensor, importance: Tensor, lam: float) -> Tensor:
    """The gradient with the penalty's, g + 2 λ Ω (θ − θ*).

    >>> theta, anchor, importance = torch.tensor([[3.0, 1.0], [1.0, 1.0], [0.5, 9.0]])
    >>> add_penalty(torch.zeros(2), theta, anchor, importance, 2.0).tolist()
    [4.0, 0.0]
    """
    return torch.addcmul(g, importance, theta - anchor, value=2 * lam)


def settle(theta: Tensor, anchor: Tensor, importance: Tensor, lam: float, lr: float) -> None:
    """The penalty's implicit step, in place: argmin_θ' ‖θ' − θ‖² / (2 lr) + λ Σ Ω (θ' − θ*)².

    That is θ' = (θ + κ θ*) / (1 + κ) with κ = 2 lr λ Ω. For κ ≪ 1 it is the explicit step; it
    never overshoots, where the explicit one diverges from κ = 2 on.

    >>> theta = torch.tensor([4.0, 4.0])
    >>> settle(theta, torch.zeros(2), torch.tensor([0.5, 0.0]), lam=1.0, lr=1.0)
    >>> theta.tolist()
    [2.0, 4.0]
    """
    kappa = importance * (2 * lr * lam)
    theta.lerp_(anchor, kappa.div_(1 + kappa))


def min_max(values: Sequence[Tensor]) -> None:
    """Scale all tensors together onto [0, 1], in place; all equal becomes all zero.

    >>> a, b = torch.tensor([1.0, 2.0]), torch.tensor([5.0])
    >>> min_max([a, b])
    >>> a.tolist(), b.tolist()
    ([0.0, 0.25], [1.0])
    """
    low = min(float(v.min()) for v in values)
    spread = max(float(v.max()) for v in values) - low
    for v in values:
        v.sub_(low).mul_(1 / spread if spread > 0 else 0.0)
