"""SLDA: streaming linear discriminant analysis."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.moments import Moments
from verse.learners.base import Learner, require_settings
from verse.learners.shared.fixed_features import FeatureChoice, FixedFeatures
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import about


class SLDA(Learner):
    """Linear discriminant analysis with class means and one shared covariance, updated exactly.

    T. Hayes, C. Kanan, "Lifelong machine learning with deep streaming linear discriminant
    analysis", CVPR workshops 2020. With e = body(z) of the start weights (``features="embedding"``)
    or z averaged over its positions (``"input"``) or the quarters of z as ``verse-joint`` looks at
    them (``"grid"``), and δ = e − μ_y::

        S ← S + n_y / (n_y + 1) δ δᵀ,   μ_y ← μ_y + δ / (n_y + 1),   n_y ← n_y + 1
        Λ = ((1 − ε) S / N + ε I)⁻¹,    score_k = μ_kᵀ Λ e − ½ μ_kᵀ Λ μ_k

    With ``features="grid"``, or without a ``shrinkage``, it is ε v I with the mean variance
    v = tr(S) / N d; without a ``shrinkage`` ε is what ``verse.kernels.discriminant.oas`` says.

    The classifier is solved for when an answer is asked for and data came since; it follows from
    the state and is no part of it.

    >>> from verse.network.plastic import Head
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

    STATE: ClassVar[tuple[str, ...]] = ("moments",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        shrinkage: Annotated[
            float | None, about("shrinkage towards the identity; none: OAS", above=0, most=1)
        ] = 1e-4,
        features: FeatureChoice = "embedding",
        seed: int = 0,
    ) -> None:
        require_settings(SLDA, locals())
        super().__init__(F, None, seed=seed)
        self.shrinkage, self.features = shrinkage, features
        self.fixed = FixedFeatures(features, self.theta)
        self.moments = Moments(1, self.fixed.d, self.device)

    def step(self, z: Tensor, y: int) -> None:
        e = self.fixed(z)
        self.require_finite(self.moments.largest(e, y))
        self.moments.add(e, y)

    def logits(self, Z: Tensor) -> Tensor:
        weight, bias = self._classifier()
        return torch.addmm(bias, self.fixed(Z), weight.t())

    def network(self) -> torch.nn.Module:
        return self.fixed.network(*self._classifier())

    def _classifier(self) -> tuple[Tensor, Tensor]:
        relative = self.features == "grid" or self.shrinkage is None
        return self.moments.classifier(self.shrinkage, relative=relative)
