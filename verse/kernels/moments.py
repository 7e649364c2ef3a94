"""Running moments of classes: a mean for each, and one scatter around the means for all."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from verse.kernels.discriminant import lda, oas
from verse.stateful import PerClass

PENDING = 64  # samples that wait until one product adds them all: it reads and writes S once


class Moments(PerClass):
    """Exact after every sample, whatever the order. A sample is ``blocks`` vectors of ``d`` values;
    blocks are taken as independent, so that their covariances stay small. With δ = e − μ_y::

        S ← S + n_y / (n_y + 1) δ δᵀ,   μ_y ← μ_y + δ / (n_y + 1),   n_y ← n_y + 1

    Parameters
    ----------
    blocks
        Vectors of a sample.
    d
        Length of a vector.
    device
        Where to compute.

    >>> moments = Moments(1, 2, torch.device("cpu"))
    >>> moments.add_class(1, torch.zeros(3))
    >>> for value in (0.0, 2.0):
    ...     moments.add(torch.full((1, 2), value), 0)
    >>> moments.means.tolist(), moments.scatter.round(decimals=4).tolist()
    ([[[1.0, 1.0]]], [[[2.0, 2.0], [2.0, 2.0]]])
    """

    def __init__(self, blocks: int, d: int, device: torch.device) -> None:
        self.means = torch.zeros(0, blocks, d, device=device)
        # replaced at every change, never written to
        self.counts = torch.zeros(0, dtype=torch.int64, device=device)
        self._scatter = torch.zeros(blocks, d, d, device=device)  # S without the pending rows
        self._rows = torch.zeros(blocks, PENDING, d, device=device)
        self._pending = 0
        self._trace = 0.0  # of S
        self._solved_for: Tensor | None = None
        self._classifier = self.means, self.counts

    @property
    def bytes(self) -> int:
        held = (self.means, self.counts, self._scatter, self._rows)
        return sum(t.numel() * t.element_size() for t in held)

    def add_class(self, classes: int, row: Tensor) -> None:
        self.means = torch.cat((self.means, self.means.new_zeros(1, *self.means.shape[1:])))
        self.counts = torch.cat((self.counts, self.counts.new_zeros(1)))

    def largest(self, e: Tensor, y: int) -> Tensor:
        """What bounds every entry of the scatter once ``e`` is in: finite, or ``add`` must not be
        called. No entry of a scatter matrix exceeds its trace."""
        gap = (e - self.means[y]).flatten()
        return torch.dot(gap, gap) + self._trace

    def add(self, e: Tensor, y: int) -> None:
        """One sample [blocks, d] of a class."""
        n = float(self.counts[y])
        gap = e - self.means[y]
        self._keep(gap, n / (n + 1))
        self.means[y] += gap / (n + 1)
        counts = self.counts.clone()
        counts[y] += 1
        self.counts = counts

    def _keep(self, gap: Tensor, share: float) -> None:
        """S ← S + share · gap gapᵀ."""
        if not share:
            return
        row = self._rows[:, self._pending]
        torch.mul(gap, share**0.5, out=row)
        self._trace += float(torch.linalg.vector_norm(row)) ** 2
        self._pending += 1
        if self._pending == PENDING:
            self._sum_up()

    def _sum_up(self) -> None:
        rows = self._rows[:, : self._pending]
        self._scatter.baddbmm_(rows.mT, rows)
        rows.zero_()  # nothing of a single sample stays behind
        self._pending = 0

    @property
    def scatter(self) -> Tensor:
        """S [blocks, d, d]."""
        rows = self._rows[:, : self._pending]
        return torch.baddbmm(self._scatter, rows.mT, rows)

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        if into is None:
            self._erase(output)
        else:
            self._join(output, into)
        others = torch.arange(len(self.counts), device=self.counts.device) != output
        self.means, self.counts = self.means[others], self.counts[others]
        self._sum_up()
        return 0

    def _join(self, y: int, into: int) -> None:
        """Around their common mean both classes deviate by what theirs differ."""
        n, m = float(self.counts[y]), float(self.counts[into])
        gap = self.means[y] - self.means[into]
        self._keep(gap, n * m / (n + m))
        self.means[into] += gap * (n / (n + m))
        counts = self.counts.clone()
        counts[into] += counts[y]
        self.counts = counts

    def _erase(self, y: int) -> None:
        """The common covariance stays as it is: divided by the samples left it is the same."""
        before = int(self.counts.sum())
        left = before - int(self.counts[y])
        self._sum_up()
        self._scatter.mul_(left / max(1, before))
        self._trace *= left / max(1, before)

    def classifier(
        self, shrinkage: float | None, *, relative: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(weight [classes, blocks · d], bias [classes]) of linear discriminant analysis.

        ``relative`` shrinks each block towards its own mean variance instead of towards 1; None
        is by the share that ``oas`` says. It is solved for once after every change.
        """
        if self._solved_for is not self.counts:
            covariance = self.scatter / max(1.0, float(self.counts.sum()))
            # the first samples tell nothing of the variance: a hundredth of the size of all means
            # is the least, so that a class counts from its first sample
            least = 0.01 * float(self.means.square().mean()) or 1.0
            weights, biases = [], []
            for means, block in zip(self.means.unbind(1), covariance, strict=True):
                scale = max(float(block.diagonal().mean()), least) if relative else 1.0
                block = block / scale
                share = oas(block, int(self.counts.sum())) if shrinkage is None else shrinkage
                weight, bias = lda(means, block, share)
                weights.append(weight / scale)
                biases.append(bias / scale)
            self._classifier = torch.cat(weights, 1), torch.stack(biases).sum(0)
            self._solved_for = self.counts
        return self._classifier

    def follow(self, other: Moments) -> None:
        """With what the other one has solved for already."""
        self.load_state(other.state())
        if other._solved_for is other.counts:
            self._classifier, self._solved_for = other._classifier, self.counts

    def mark(self) -> Any:
        return self.means, self.counts

    def undo(self, mark: Any) -> None:
        self.means, self.counts = mark

    def state(self) -> dict[str, Tensor]:
        return {
            "means": self.means,
            "counts": self.counts,
            "scatter": self._scatter,
            "rows": self._rows[:, : self._pending],
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        device, classes = self._scatter.device, len(state["counts"])
        if state["means"].shape != (classes, *self.means.shape[1:]):
            raise ValueError(f"the means are not those of {classes} classes")
        self.means = state["means"].to(device).clone()
        rows = state.get("rows", self._rows[:, :0])  # files of before have none
        if rows.shape[1] >= PENDING:
            raise ValueError("more samples are pending than may be")
        self._scatter.copy_(state["scatter"])
        self._pending = rows.shape[1]
        self._rows[:, : self._pending] = rows
        self._trace = float(self.scatter.diagonal(dim1=1, dim2=2).sum(dtype=torch.float64))
        self.counts = state["counts"].to(device, torch.int64, copy=True)  # float32 in old files
