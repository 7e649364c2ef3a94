"""Running moments of classes: a mean for each, and one scatter around the means for all."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from verse.kernels.discriminant import lda


class Moments:
    """Exact after every sample, whatever the order. A sample is ``blocks`` vectors of ``d`` values;
    blocks are taken as independent, so that their covariances stay small. With δ = e − μ_y::

        S ← S + n_y / (n_y + 1) δ δᵀ,   μ_y ← μ_y + δ / (n_y + 1),   n_y ← n_y + 1

    >>> moments = Moments(1, 2, torch.device("cpu"))
    >>> moments.grow()
    >>> for value in (0.0, 2.0):
    ...     moments.add(torch.full((1, 2), value), 0)
    >>> moments.means.tolist(), moments.scatter.tolist()
    ([[[1.0, 1.0]]], [[[2.0, 2.0], [2.0, 2.0]]])
    """

    def __init__(self, blocks: int, d: int, device: torch.device) -> None:
        self.means = torch.zeros(0, blocks, d, device=device)
        self.counts = torch.zeros(0, device=device)  # replaced at every change, never written to
        self.scatter = torch.zeros(blocks, d, d, device=device)
        self._solved_for: Tensor | None = None
        self._classifier = self.means, self.counts

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.state().values())

    def grow(self) -> None:
        """Make room for one more class."""
        self.means = torch.cat((self.means, self.means.new_zeros(1, *self.means.shape[1:])))
        self.counts = torch.cat((self.counts, self.counts.new_zeros(1)))

    def largest(self, e: Tensor, y: int) -> Tensor:
        """What bounds every entry of the scatter once ``e`` is in: finite, or ``add`` must not be
        called. No entry of a scatter matrix exceeds its largest diagonal one."""
        return self.scatter.diagonal(dim1=1, dim2=2) + (e - self.means[y]).square()

    def add(self, e: Tensor, y: int) -> None:
        """One sample [blocks, d] of a class."""
        n = float(self.counts[y])
        gap = e - self.means[y]
        for scatter, row in zip(self.scatter, gap, strict=True):
            scatter.addr_(row, row, alpha=n / (n + 1))
        self.means[y] += gap / (n + 1)
        counts = self.counts.clone()
        counts[y] += 1
        self.counts = counts

    def absorb(self, y: int, into: int) -> None:
        """Two classes become one: around their common mean both deviate by what theirs differ."""
        n, m = float(self.counts[y]), float(self.counts[into])
        gap = self.means[y] - self.means[into]
        for scatter, row in zip(self.scatter, gap, strict=True):
            scatter.addr_(row, row, alpha=n * m / (n + m))
        self.means[into] += gap * (n / (n + m))
        counts = self.counts.clone()
        counts[y], counts[into] = 0, n + m
        self.counts = counts

    def erase(self, y: int) -> None:
        """The class leaves: its mean is gone; the common covariance stays as it is."""
        counts = self.counts.clone()
        counts[y] = 0
        left, before = float(counts.sum()), float(self.counts.sum())
        self.scatter.mul_(left / before)  # so that divided by the samples left it is the same
        self.means[y] = 0
        self.counts = counts

    def classifier(self, shrinkage: float, *, relative: bool = False) -> tuple[Tensor, Tensor]:
        """(weight [classes, blocks · d], bias [classes]) of linear discriminant analysis.

        ``relative`` shrinks each block towards its own mean variance instead of towards 1. It is
        solved for once after every change.
        """
        if self._solved_for is not self.counts:
            covariance = self.scatter / max(1.0, float(self.counts.sum()))
            # the first samples tell nothing of the variance: a hundredth of the size of all means
            # is the least, so that a class counts from its first sample
            least = 0.01 * float(self.means.square().mean()) or 1.0
            weights, biases = [], []
            for means, block in zip(self.means.unbind(1), covariance, strict=True):
                scale = max(float(block.diagonal().mean()), least) if relative else 1.0
                weight, bias = lda(means, block / scale, shrinkage)
                weights.append(weight / scale)
                biases.append(bias / scale)
            self._classifier = torch.cat(weights, 1), torch.stack(biases).sum(0)
            self._solved_for = self.counts
        return self._classifier

    def follow(self, other: Moments) -> None:
        """Become a copy of another one, with what that has solved for already."""
        self.load_state(other.state())
        if other._solved_for is other.counts:
            self._classifier, self._solved_for = other._classifier, self.counts

    def mark(self) -> Any:
        """What ``undo`` needs to take a growth back (not a change of values)."""
        return self.means, self.counts

    def undo(self, mark: Any) -> None:
        self.means, self.counts = mark

    def state(self) -> dict[str, Tensor]:
        return {"means": self.means, "counts": self.counts, "scatter": self.scatter}

    def load_state(self, state: dict[str, Tensor]) -> None:
        device = self.scatter.device
        self.means = state["means"].to(device).clone()
        self.scatter.copy_(state["scatter"])
        self.counts = state["counts"].to(device).clone()
