"""RanPAC: ridge regression on random features."""

from __future__ import annotations

from typing import Annotated, ClassVar

from torch import Tensor, nn

from verse.backbones.outputs import make_linear
from verse.kernels.lazy_ridge import LazyRidge
from verse.learners.base import Learner, require_settings
from verse.learners.shared.fixed_features import FeatureChoice, FixedFeatures
from verse.learners.shared.random_features import Count, rectified_features
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import about


class RanPAC(Learner):
    """A fixed random layer with ReLU, followed by ridge regression.

    M. McDonnell et al., "RanPAC: random projections and pre-trained models for continual
    learning", NeurIPS 2023. With e the features of a sample, of length one, and R [M, d] of
    standard normal numbers::

        h = √(2/M) max(0, R e),   G ← G + h hᵀ,   Q_y ← Q_y + h,   score = Q (G + λ I)⁻¹ h

    The result is that of ridge regression on all samples at once, whatever their order. It is
    solved for when an answer is asked for and samples came since: O(M³), a third of a second for
    2,000. R follows from the seed and is not saved.

    Parameters
    ----------
    F
        The plastic network; only its start weights are used, for the features.
    memory
        Not used: no sample is kept.
    M
        Random features.
    ridge
        λ.
    features
        What of a sample it looks at, as in ``FixedFeatures``.
    seed
        Random seed, of R.

    >>> import torch
    >>> from verse.network.plastic import Head
    >>> learner = RanPAC(Plastic(nn.Identity(), Head(2), z_shape=(2,)), M=32)
    >>> for t in range(8):
    ...     learner.learn_one(torch.eye(2)[t % 2] + 0.1 * (t // 2 % 2), t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "ranpac"
    traits: ClassVar[Traits] = Traits(
        kind="streaming",
        subset_replay=None,
        fidelity="adapted",
        adaptation="features are scaled to length one and λ is a setting, where the authors choose "
        "it on a part of each task; F's first layers are not trained on the first task.",
    )
    STATE: ClassVar[tuple[str, ...]] = ("regression",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        M: Count = 2000,
        ridge: Annotated[float, about("penalty λ of the squared weights", least=1e-6)] = 0.1,
        features: FeatureChoice = "embedding",
        seed: int = 0,
    ) -> None:
        require_settings(RanPAC, locals())
        super().__init__(F, None, seed=seed)
        self.M, self.ridge, self.features = M, ridge, features
        self.fixed = FixedFeatures(features, self.theta)
        self.expand = rectified_features(self.fixed.d, M, seed=seed).to(self.device)
        self.regression = LazyRidge(M, ridge, self.device)

    def step(self, z: Tensor, y: int) -> None:
        h = self.expand(self.fixed(z))[0]
        self.require_finite(h)
        self.regression.add(h, y)

    def logits(self, Z: Tensor) -> Tensor:
        scores: Tensor = self.expand(self.fixed(Z)) @ self.regression.weights.t()
        return scores

    def network(self) -> nn.Module:
        weight = self.regression.weights
        body = self.fixed.network(weight.new_zeros(1, self.fixed.d), weight.new_zeros(1)).body
        last = make_linear(weight.clone(), weight.new_zeros(len(weight)))
        return nn.Sequential(body, self.expand, last).requires_grad_(False)
