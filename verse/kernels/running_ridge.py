"""Ridge regression on class labels whose weights follow every sample."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from verse.kernels.class_sums import ClassSums
from verse.kernels.running_inverse import MOST, RunningInverse

LEAST = 1e-6  # of Σ |x|²: what single precision can still tell from nothing


class RunningRidge(ClassSums):
    """W = Q A⁻¹ with A = Σ x xᵀ + λ I and the row Q_k the sum of all x of class k.

    A sample costs O(d²): with g and the scale s = 1 / √(1 + xᵀA⁻¹x) of ``RunningInverse``::

        W ← W + s (onehot(y) − W x) gᵀ

    W is solved for anew whenever A is factorised, so that rounding errors do not add up. Each class
    has a row of its own that no other depends on. So a merge adds two rows, exactly; and a class
    that leaves takes its row along, while its samples go on being samples of none of the others.

    λ is never less than ``LEAST`` times Σ |x|².

    Parameters
    ----------
    d
        Length of a vector.
    ridge
        λ.
    device
        Where to compute.

    >>> regression = RunningRidge(2, 1.0, torch.device("cpu"))
    >>> regression.add_class(1, torch.zeros(3))
    >>> regression.add(torch.tensor([1.0, 0.0]), 0)
    >>> [round(value, 4) for value in regression.weights[0].tolist()]
    [0.5, 0.0]
    """

    def __init__(self, d: int, ridge: float, device: torch.device) -> None:
        super().__init__(d, ridge, device)
        self.inverse = RunningInverse(d, device)
        self.inverse.set_ridge(ridge)
        self.weights = torch.zeros(0, d, device=device)  # W
        self.size = 0.0  # Σ |x|²

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.state().values())

    def add(self, x: Tensor, y: int) -> None:
        """One sample [d] of class ``y``."""
        error = -torch.mv(self.weights, x)
        error[y] += 1
        g, scale = self.inverse.add(x)
        self.weights.addr_(error, g, alpha=scale)
        self.sums[y] += x
        self.size += float(torch.dot(x, x))
        if self.inverse.full:
            self._sum_up()

    def _sum_up(self) -> None:
        self.inverse.sum_up(max(self.ridge, LEAST * self.size), MOST)
        self.weights = self.inverse.solve(self.sums)

    def add_class(self, classes: int, row: Tensor) -> None:
        super().add_class(classes, row)
        self.weights = torch.cat((self.weights, self.weights.new_zeros(1, self.sums.shape[1])))

    def mark(self) -> Any:
        return self.sums, self.weights

    def undo(self, mark: Any) -> None:
        self.sums, self.weights = mark

    def follow(self, other: RunningRidge) -> None:
        self.inverse.follow(other.inverse)
        self.sums, self.weights = other.sums.clone(), other.weights.clone()
        self.size = other.size

    def state(self) -> dict[str, Tensor]:
        own = {"sums": self.sums, "weights": self.weights}
        own |= {"size": torch.tensor(self.size, dtype=torch.float64)}
        return own | {f"inverse.{name}": value for name, value in self.inverse.state().items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        device = self.sums.device
        self.sums = state["sums"].to(device).clone()
        self.weights = state["weights"].to(device).clone()
        self.size = float(state["size"])
        prefix = "inverse."
        self.inverse.load_state(
            {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        )
