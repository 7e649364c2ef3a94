"""Ridge regression on class labels that is solved for when an answer is asked for."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from verse.kernels.class_sums import ClassSums

PENDING = 128  # samples that wait until one product adds them all


class LazyRidge(ClassSums):
    """W = Q (G + λ I)⁻¹ with G = Σ x xᵀ and the row Q_k the sum of all x of class k.

    Unlike ``RunningRidge`` a sample costs little (one row is kept, and every ``PENDING`` of them
    become part of G by one product), and the first answer after it O(d³), in float64. Classes are
    dropped and merged as there.

    Parameters
    ----------
    d
        Length of a vector.
    ridge
        λ.
    device
        Where to compute.

    >>> regression = LazyRidge(2, 1.0, torch.device("cpu"))
    >>> regression.add_class(1, torch.zeros(3))
    >>> regression.add(torch.tensor([1.0, 0.0]), 0)
    >>> regression.weights.tolist()
    [[0.5, 0.0]]
    """

    def __init__(self, d: int, ridge: float, device: torch.device) -> None:
        super().__init__(d, ridge, device)
        self.gram = torch.zeros(d, d, device=device)  # G without the pending samples
        self.rows = torch.zeros(PENDING, d, device=device)
        self.pending = 0
        self._weights: Tensor | None = None

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in (self.gram, self.rows, self.sums))

    def add(self, x: Tensor, y: int) -> None:
        """One sample [d] of class ``y``."""
        self._weights = None
        self.rows[self.pending] = x
        self.pending += 1
        self.sums[y] += x
        if self.pending == PENDING:
            self._sum_up()

    def _sum_up(self) -> None:
        rows = self.rows[: self.pending]
        self.gram.addmm_(rows.t(), rows)
        rows.zero_()
        self.pending = 0

    @property
    def weights(self) -> Tensor:
        """W [classes, d], solved for once after every change."""
        if self._weights is None:
            rows = self.rows[: self.pending].cpu().double()
            A = torch.addmm(self.gram.cpu().double(), rows.t(), rows)
            A.diagonal().add_(self.ridge)
            solved = torch.cholesky_solve(self.sums.cpu().double().t(), torch.linalg.cholesky(A))
            self._weights = solved.t().to(self.sums)
        return self._weights

    def add_class(self, classes: int, row: Tensor) -> None:
        self._weights = None
        super().add_class(classes, row)

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        self._weights = None
        return super().drop_class(output, into, classes)

    def mark(self) -> Any:
        return self.sums

    def undo(self, mark: Any) -> None:
        self.sums, self._weights = mark, None

    def follow(self, other: LazyRidge) -> None:
        self.load_state(other.state())
        self._weights = other._weights  # replaced, never written to

    def state(self) -> dict[str, Tensor]:
        return {"gram": self.gram, "rows": self.rows[: self.pending], "sums": self.sums}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.gram.copy_(state["gram"])
        self.pending = len(state["rows"])
        self.rows[: self.pending] = state["rows"]
        self.sums = state["sums"].to(self.gram.device).clone()
        self._weights = None
