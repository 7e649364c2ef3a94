"""The quadratic penalty of EWC++, MAS and SI: λ Σ Ω (θ − θ*)²."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def pull(gradient: Tensor, theta: Tensor, anchor: Tensor, importance: Tensor, lam: float) -> Tensor:
    """Add the penalty's gradient, 2 λ Ω (θ − θ*), to ``gradient`` in place.

    >>> g = torch.zeros(2)
    >>> pull(g, torch.tensor([3.0, 1.0]), torch.ones(2), torch.tensor([0.5, 9.0]), 2.0).tolist()
    [4.0, 0.0]
    """
    return gradient.addcmul_(importance, theta - anchor, value=2 * lam)


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
