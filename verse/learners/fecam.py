"""FeCAM: the nearest class by a metric of each class."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from verse.backbones.outputs import ClassDistances, SignedPower, UnitLength
from verse.kernels.class_moments import ClassMoments
from verse.kernels.correlations import shrink_twofold, whiten_correlations
from verse.learners.base import Learner, require_settings
from verse.learners.shared.fixed_features import FeatureChoice, FixedFeatures
from verse.learners.shared.outputs import without_row
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import about

ROUNDS = 2  # the authors shrink a covariance twice


class FeCAM(Learner):
    """The class whose mean is nearest by the Mahalanobis distance of its own covariance.

    D. Goswami et al., "FeCAM: exploiting the heterogeneity of class distributions in exemplar-free
    continual learning", NeurIPS 2023. With v the features of a sample, t(v) = v^β (Tukey), μ_k
    the mean of v and Σ_k the covariance of t(v) in class k, V₁ the mean of its diagonal and V₂ that
    of all other entries, and u(·) scaling to length one::

        Σ_k ← Σ_k + γ₁ V₁ I + γ₂ V₂ (1 − I)            twice
        Σ̂_k[i, j] = Σ_k[i, j] / √(Σ_k[i, i] Σ_k[j, j])
        score_k = −½ δᵀ Σ̂_k⁻¹ δ,   δ = u(t(v)) − u(t(μ_k))

    Parameters
    ----------
    F, memory
        Only the start weights of F are used, for the features; no sample is kept.
    beta
        β; 1: no transform. A negative value keeps its sign.
    gamma1, gamma2
        γ₁ and γ₂.
    features
        What of a sample it looks at, as in ``FixedFeatures``; d² values are kept for each class.
    seed
        Random seed. Nothing here is random.

    >>> from verse.network.plastic import Head
    >>> learner = FeCAM(Plastic(nn.Identity(), Head(2), z_shape=(2,)))
    >>> for t in range(8):
    ...     learner.learn_one(torch.eye(2)[t % 2] + 0.1 * (t // 2 % 2), t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "fecam"
    traits: ClassVar[Traits] = Traits(
        kind="streaming",
        subset_replay=None,
        fidelity="adapted",
        adaptation="covariances are exact after every sample instead of computed once per class, "
        "and a class with one sample has the identity; the power keeps the sign of features that "
        "have one; F is not trained on a first task.",
    )
    STATE: ClassVar[tuple[str, ...]] = ("moments", "prototypes")

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        beta: Annotated[float, about("Tukey's power of every feature", above=0, most=1)] = 0.5,
        gamma1: Annotated[float, about("shrinkage by the mean variance", above=0)] = 1.0,
        gamma2: Annotated[float, about("shrinkage by the mean covariance", least=0)] = 1.0,
        features: FeatureChoice = "input",
        seed: int = 0,
    ) -> None:
        require_settings(FeCAM, locals())
        super().__init__(F, None, seed=seed)
        self.beta, self.gamma1, self.gamma2, self.features = beta, gamma1, gamma2, features
        self.fixed = FixedFeatures(features, self.theta)
        self.tukey = SignedPower(beta)
        self.moments = ClassMoments(self.fixed.d, self.device)  # of t(v)
        self.prototypes = torch.zeros(0, self.fixed.d, device=self.device)  # μ

    def new_output(self, output: int) -> None:
        self.prototypes = torch.cat((self.prototypes, self.prototypes.new_zeros(1, self.fixed.d)))

    def drop_output(self, output: int, into: int | None) -> None:
        if into is not None:
            n, m = self.moments.counts[output], self.moments.counts[into]
            self.prototypes[into] = self.prototypes[into].lerp(self.prototypes[output], n / (n + m))
        self.prototypes = without_row(self.prototypes, output)

    def step(self, z: Tensor, y: int) -> None:
        v = self.fixed(z)[0]
        t = self.tukey(v)
        mean = self.prototypes[y].lerp(v, 1 / (self.moments.counts[y] + 1))
        self.require_finite(torch.cat((mean, self.moments.largest(t, y))))
        self.prototypes[y] = mean
        self.moments.add(t, y)

    def logits(self, Z: Tensor) -> Tensor:
        scores: Tensor = self._distances()(normalize(self.tukey(self.fixed(Z))))
        return scores

    @property
    def memory_bytes(self) -> int:
        """The means stand for samples, too."""
        return super().memory_bytes + self.prototypes.numel() * self.prototypes.element_size()

    def network(self) -> nn.Module:
        body = self.fixed.network(self.prototypes, self.prototypes.new_zeros(1)).body
        return nn.Sequential(body, self.tukey, UnitLength(), self._distances())

    def _distances(self) -> ClassDistances:
        means = normalize(self.tukey(self.prototypes))
        metrics = [self.moments.derived(y, self.build_metric) for y in range(len(means))]
        return ClassDistances(means, torch.stack(metrics))

    def build_metric(self, scatter: Tensor) -> Tensor:
        """W with W Wᵀ = Σ̂⁻¹; the number of samples drops out of Σ̂."""
        for _ in range(ROUNDS):
            scatter = shrink_twofold(scatter, self.gamma1, self.gamma2)
        return whiten_correlations(scatter)
