"""Streaming discriminant analysis of the quarters of a map: the statistics of verse-lda alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from verse.backbones.plastic import Plastic
from verse.kernels.moments import Moments
from verse.learners.base import require_settings
from verse.learners.quarters import Quarters, linear
from verse.learners.setting import about
from verse.learners.slda import SLDA
from verse.learners.with_moments import WithMoments
from verse.memory.base import Memory


class SLDAQuarters(WithMoments):
    """Class means and covariances of what a map shows and roughly where; no network learns.

    What ``verse-lda`` adds to VERSE, without VERSE: the control that tells how much of its answer
    comes from which. With the blocks q_b(z) of ``Quarters``, one covariance Σ_b each, shrunk
    towards its mean variance, and D values in all::

        score_k = (1 / T √D) Σ_b [ μ_kbᵀ Σ_b⁻¹ q_b(z) − ½ μ_kbᵀ Σ_b⁻¹ μ_kb ]

    >>> from verse.backbones.plastic import Head
    >>> learner = SLDAQuarters(Plastic(nn.Identity(), Head(2), z_shape=(2,)))
    >>> for t in range(8):
    ...     learner.learn_one(torch.eye(2)[t % 2] + 0.1 * (t // 2 % 2), t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "slda-quarters"
    traits = replace(
        SLDA.traits,
        adaptation="a variant of this project: discriminant analysis of the quarters of a map, "
        "taken as independent blocks.",
    )

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        shrinkage: Annotated[float, about("share of the mean variance", above=0, most=1)] = 0.1,
        temperature: Annotated[float, about("softens the scores", above=0)] = 0.3,
        seed: int = 0,
    ) -> None:
        require_settings(SLDAQuarters, locals())
        super().__init__(F, None, seed=seed)
        self.shrinkage, self.temperature = shrinkage, temperature
        self.quarters = Quarters(F.z_shape, channels_last=F.channels_last)
        self.moments = Moments(self.quarters.blocks, self.quarters.d, self.device)

    def step(self, z: Tensor, y: int) -> None:
        e = self.quarters(z)[0]
        self.refuse_endless(e, y)
        self.moments.add(e, y)

    def logits(self, Z: Tensor) -> Tensor:
        weight, bias = self._classifier()
        return torch.addmm(bias, self.quarters.rows(Z), weight.t())

    def network(self) -> nn.Module:
        module = nn.Sequential(self.quarters.module, linear(*self._classifier()))
        return module.requires_grad_(False)

    def _classifier(self) -> tuple[Tensor, Tensor]:
        return self.quarters.classifier(self.moments, self.shrinkage, self.temperature)
