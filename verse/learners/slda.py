"""SLDA: streaming linear discriminant analysis."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from verse.backbones.plastic import Plastic
from verse.kernels.discriminant import lda
from verse.learners.base import Learner, require
from verse.learners.traits import Traits
from verse.memory.base import Memory


class SLDA(Learner):
    """Class means and one covariance, both exact after every sample; a linear classifier of them.

    T. Hayes, C. Kanan, "Lifelong machine learning with deep streaming linear discriminant
    analysis", CVPR workshops 2020. With e = body(z) of the start weights and δ = e − μ_y::

        S ← S + n_y / (n_y + 1) δ δᵀ,   μ_y ← μ_y + δ / (n_y + 1),   n_y ← n_y + 1
        Λ = ((1 − ε) S / N + ε I)⁻¹,    score_k = μ_kᵀ Λ e − ½ μ_kᵀ Λ μ_k

    The classifier is solved for when an answer is asked for and data came since; it follows from
    the state and is no part of it.

    >>> from verse.backbones.plastic import Head
    >>> learner = SLDA(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)))
    >>> for t in range(8):
    ...     learner.learn_one(torch.eye(2)[t % 2] + 0.1 * (t // 2 % 2), t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "slda"
    traits: ClassVar[Traits] = Traits(
        kind="streaming",
        subset_replay=None,
        fidelity="adapted",
        adaptation="the covariance's weight is n/(n+1) with the class's own count, not that of all "
        "samples, so that the result is exactly the batch solution and a class's first sample, "
        "which has no mean to deviate from, adds nothing; no base initialisation.",
    )
    STATE: ClassVar[tuple[str, ...]] = ("means", "counts", "scatter")

    def __init__(
        self, F: Plastic, memory: Memory | None = None, *, shrinkage: float = 1e-4, seed: int = 0
    ) -> None:
        super().__init__(F, None, seed=seed)
        require(0 < shrinkage <= 1, f"shrinkage must be in (0, 1], not {shrinkage}")
        self.shrinkage = shrinkage
        d = F.head.d
        self.means = torch.zeros(0, d, device=self.device)
        self.counts = torch.zeros(0, device=self.device)  # replaced at every step, never written to
        self.scatter = torch.zeros(d, d, device=self.device)
        self._solved_for = self.counts
        self._classifier = self.means, self.counts

    def new_output(self, output: int) -> None:
        self.means = torch.cat((self.means, self.means.new_zeros(1, self.means.shape[1])))
        self.counts = torch.cat((self.counts, self.counts.new_zeros(1)))

    def absorb(self, output: int, into: int) -> None:
        # around their common mean both deviate by what their own means differ
        n, m = float(self.counts[output]), float(self.counts[into])
        gap = self.means[output] - self.means[into]
        self.scatter.addr_(gap, gap, alpha=n * m / (n + m))
        self.means[into] += gap * (n / (n + m))
        counts = self.counts.clone()
        counts[output], counts[into] = 0, n + m
        self.counts = counts

    def step(self, z: Tensor, y: int) -> None:
        n = float(self.counts[y])
        gap = self.theta.embed(z)[0] - self.means[y]
        # no entry of a scatter matrix exceeds its largest diagonal one
        self.clip_scale(self.scatter.diagonal() + gap.square(), None)

        counts = self.counts.clone()
        counts[y] += 1
        self.scatter.addr_(gap, gap, alpha=n / (n + 1))
        self.means[y] += gap / (n + 1)
        self.counts = counts

    def logits(self, Z: Tensor) -> Tensor:
        weight, bias = self._solved()
        return torch.addmm(bias, self.theta.embed(Z), weight.t())

    def network(self) -> torch.nn.Module:
        return self.theta.frozen(*self._solved())

    def _solved(self) -> tuple[Tensor, Tensor]:
        """Weight [classes, d] and bias [classes] of the linear classifier."""
        if self._solved_for is not self.counts:
            covariance = self.scatter / float(self.counts.sum())
            self._classifier = lda(self.means, covariance, self.shrinkage)
            self._solved_for = self.counts
        return self._classifier
