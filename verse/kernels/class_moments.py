"""Running moments of classes: a mean and a scatter matrix for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from verse.stateful import PerClass


class ClassMoments(PerClass):
    """Exact after every sample, whatever the order. With δ = x − μ_y::

        S_y ← S_y + n_y / (n_y + 1) δ δᵀ,   μ_y ← μ_y + δ / (n_y + 1),   n_y ← n_y + 1

    Unlike ``Moments`` each class has a scatter of its own: 4 d² bytes for each.

    Parameters
    ----------
    d
        Values of a sample.
    device
        Where to compute.

    >>> moments = ClassMoments(2, torch.device("cpu"))
    >>> moments.add_class(1, torch.zeros(3))
    >>> for value in (0.0, 2.0):
    ...     moments.add(torch.full((2,), value), 0)
    >>> moments.means[0].tolist(), moments.scatters[0].tolist()
    ([1.0, 1.0], [[2.0, 2.0], [2.0, 2.0]])
    """

    def __init__(self, d: int, device: torch.device) -> None:
        self._zero = torch.zeros(d, device=device)
        # lists, so that a new class copies nothing; entries of both are written to
        self.means: list[Tensor] = []
        self.scatters: list[Tensor] = []
        self.counts: list[int] = []
        self._derived: list[Tensor | None] = []

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in (*self.means, *self.scatters))

    def add_class(self, classes: int, row: Tensor) -> None:
        self.means.append(self._zero.clone())
        self.scatters.append(self._zero.new_zeros(len(self._zero), len(self._zero)))
        self.counts.append(0)
        self._derived.append(None)

    def largest(self, x: Tensor, y: int) -> Tensor:
        """What bounds every entry of the scatter once ``x`` is in: finite, or ``add`` must not be
        called."""
        return self.scatters[y].diagonal() + (x - self.means[y]).square()

    def add(self, x: Tensor, y: int) -> None:
        """One sample [d] of class ``y``."""
        self._derived[y] = None
        n = self.counts[y]
        gap = x - self.means[y]
        self.scatters[y].addr_(gap, gap, alpha=n / (n + 1))
        self.means[y] += gap / (n + 1)
        self.counts[y] += 1

    def derived(self, y: int, make: Callable[[Tensor], Tensor]) -> Tensor:
        """What ``make``, always the same, makes of the scatter of ``y``; kept until it changes."""
        made = self._derived[y]
        if made is None:
            made = self._derived[y] = make(self.scatters[y])
        return made

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        if into is not None:
            n, m = self.counts[output], self.counts[into]
            gap = self.means[output] - self.means[into]
            self.scatters[into] += self.scatters[output]
            self.scatters[into].addr_(gap, gap, alpha=n * m / (n + m))
            self.means[into] += gap * (n / (n + m))
            self.counts[into] += n
            self._derived[into] = None
        for values in (self.means, self.scatters, self.counts, self._derived):
            del values[output]
        return 0

    def mark(self) -> Any:
        return list(self.means), list(self.scatters), list(self.counts)

    def undo(self, mark: Any) -> None:
        self.means, self.scatters, self.counts = mark
        self._derived = [None] * len(self.counts)

    def follow(self, other: ClassMoments) -> None:
        self.load_state(other.state())
        self._derived = list(other._derived)  # replaced, never written to

    def state(self) -> dict[str, Tensor]:
        d, n = len(self._zero), len(self.counts)
        return {
            "means": torch.stack(self.means) if n else self._zero.new_zeros(0, d),
            "scatters": torch.stack(self.scatters) if n else self._zero.new_zeros(0, d, d),
            "counts": torch.tensor(self.counts, dtype=torch.int64),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        d, n = len(self._zero), len(state["counts"])
        if state["means"].shape != (n, d) or state["scatters"].shape != (n, d, d):
            raise ValueError(f"these are not the moments of {n} classes with {d} values")
        self.means = [row.to(self._zero.device).clone() for row in state["means"]]
        self.scatters = [row.to(self._zero.device).clone() for row in state["scatters"]]
        self.counts = [int(count) for count in state["counts"]]
        self._derived = [None] * n
