"""VERSE whose answer also weighs what the statistics of the whole stream say."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from verse.backbones.outputs import make_linear
from verse.kernels.moments import Moments
from verse.learners.base import require_settings
from verse.learners.shared.quarters import Quarters
from verse.learners.verse import VERSE
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import about


class VERSELDA(VERSE):
    """VERSE combined with a discriminant analysis of fixed features.

    A memory of a few per cent forgets what it does not hold. Class means and a covariance do not:
    they are the same whatever the order of the stream, and know a new class from its first
    sample. The network in turn learns features that fixed ones lack. With the quarters q(z) of a
    sample (its map's mean and three differences of its quarters, which tell roughly where
    something is), one covariance Σ_b for each of these blocks b, shrunk towards its mean
    variance, and D values in all::

        score_k = w F_θ(z)_k + (1 / T √D) Σ_b [ μ_kbᵀ Σ_b⁻¹ q_b(z) − ½ μ_kbᵀ Σ_b⁻¹ μ_kb ]

    Gaussian posteriors in hundreds of dimensions are far too sure of themselves: √D and the
    temperature T soften them, w is the weight of the network.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import ClassBalanced
    >>> F = Plastic(nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = VERSELDA(F, ClassBalanced(8))
    >>> for t in range(8):
    ...     learner.learn_one(torch.eye(2)[t % 2] + 0.1 * (t // 2 % 2), t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "verse-lda"
    traits = replace(
        VERSE.traits,
        fidelity="adapted",
        adaptation="a variant of this project: VERSE's network and a streaming discriminant "
        "analysis answer together.",
    )
    STATE: ClassVar[tuple[str, ...]] = (*VERSE.STATE, "moments")

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        shrinkage: Annotated[
            float, about("shrinkage towards the mean variance", above=0, most=1)
        ] = 0.1,
        temperature: Annotated[float, about("temperature of the statistics", above=0)] = 0.3,
        weight: Annotated[float, about("weight of the network's scores", least=0)] = 0.3,
        alpha: float = 0.005,
        beta: float = 0.01,
        lam: float = 0.3,
        gamma: float = 0.9,
        r: float = 0.05,
        C: int = 16,
        clip: float | None = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(VERSELDA, locals())
        super().__init__(
            F, memory, alpha=alpha, beta=beta, lam=lam, gamma=gamma, r=r, C=C, clip=clip, seed=seed
        )
        self.shrinkage, self.temperature, self.weight = shrinkage, temperature, weight
        self.quarters = Quarters(F.z_shape, channels_last=F.channels_last)
        self.moments = Moments(self.quarters.blocks, self.quarters.d, self.device)

    def step(self, z: Tensor, y: int) -> None:
        e = self.quarters(z)[0]
        self.require_finite(self.moments.largest(e, y))
        super().step(z, y)
        self.moments.add(e, y)

    def logits(self, Z: Tensor) -> Tensor:
        weight, bias = self._statistics()
        q = self.quarters.rows(Z)
        return torch.addmm(super().logits(Z), q, weight.t(), beta=self.weight).add_(bias)

    def network(self) -> nn.Module:
        return _Both(super().network(), self.weight, self.quarters.module, *self._statistics())

    def _statistics(self) -> tuple[Tensor, Tensor]:
        return self.quarters.classifier(self.moments, self.shrinkage, self.temperature)


class _Both(nn.Module):
    """The sum of both scores, with weights of its own."""

    def __init__(
        self, F: nn.Module, share: float, quarters: nn.Module, weight: Tensor, bias: Tensor
    ) -> None:
        super().__init__()
        self.F, self.share, self.quarters = F, share, quarters
        self.linear = make_linear(weight, bias)
        self.requires_grad_(False)

    def forward(self, z: Tensor) -> Tensor:
        scores: Tensor = self.F(z) * self.share + self.linear(self.quarters(z))
        return scores
