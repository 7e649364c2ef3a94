"""NCM: the nearest class mean."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from verse.learners.base import Learner
from verse.learners.shared.fixed_features import FeatureChoice, FixedFeatures
from verse.learners.shared.outputs import without_row
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic


class NCM(Learner):
    """Nearest class mean: it stores one running mean per class.

    T. Mensink et al., "Distance-based image classification: generalizing to new classes at
    near-zero cost", TPAMI 2013 (without their learned metric). With e = body(z) of the start
    weights (``features="embedding"``) or z averaged over its positions (``"input"``)::

        μ_y ← μ_y + (e − μ_y) / (n_y + 1),  n_y ← n_y + 1;   score_k = −½ ‖e − μ_k‖²

    >>> from verse.network.plastic import Head
    >>> learner = NCM(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)))
    >>> for t in range(4):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "ncm"
    traits: ClassVar[Traits] = Traits(kind="streaming", subset_replay=None)
    STATE: ClassVar[tuple[str, ...]] = ("means", "counts")

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        features: FeatureChoice = "embedding",
        seed: int = 0,
    ) -> None:
        super().__init__(F, None, seed=seed)
        self.features = features
        self.fixed = FixedFeatures(features, self.theta)
        self.means = torch.zeros(0, self.fixed.d, device=self.device)
        self.counts: list[int] = []

    def new_output(self, output: int) -> None:
        self.means = torch.cat((self.means, self.means.new_zeros(1, self.means.shape[1])))
        self.counts.append(0)

    def drop_output(self, output: int, into: int | None) -> None:
        if into is not None:
            total = self.counts[output] + self.counts[into]
            share = self.counts[output] / total
            self.means[into] = self.means[into].lerp(self.means[output], share)
            self.counts[into] = total
        self.means = without_row(self.means, output)
        del self.counts[output]

    def step(self, z: Tensor, y: int) -> None:
        e = self.fixed(z)[0]
        mean = self.means[y].lerp(e, 1 / (self.counts[y] + 1))
        self.require_finite(mean)
        self.means[y] = mean
        self.counts[y] += 1

    def logits(self, Z: Tensor) -> Tensor:
        # ‖e‖² is the same for every class
        return self.fixed(Z) @ self.means.t() - 0.5 * self.means.square().sum(1)

    @property
    def memory_bytes(self) -> int:
        """The means stand for samples."""
        return self.means.numel() * self.means.element_size()

    def network(self) -> torch.nn.Module:
        return self.fixed.network(self.means, -0.5 * self.means.square().sum(1))
