"""Recursive ridge regression on fixed features, as in ACIL."""

from __future__ import annotations

from typing import Annotated, ClassVar

from torch import Tensor, nn
from torch.nn.functional import normalize

from verse.backbones.outputs import UnitLength
from verse.kernels.running_ridge import RunningRidge
from verse.learners.base import Learner, require_settings
from verse.learners.shared.fixed_features import FeatureChoice, FixedFeatures
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import about


class Ridge(Learner):
    """Ridge regression on one-hot labels, updated exactly; the order does not matter.

    H. Zhuang et al., "ACIL: analytic class-incremental learning with absolute memorization and
    privacy protection", NeurIPS 2022; "G-ACIL: analytic learning for exemplar-free generalized
    class incremental learning", 2024. With x the features of a sample, of length one, and
    R = (Σ x xᵀ + λ I)⁻¹::

        R ← R − R x xᵀ R / (1 + xᵀ R x),   W ← W + (onehot(y) − W x) (R x)ᵀ,   score = W x

    After any number of samples W is what ridge regression on all of them at once gives: the W
    that makes Σ ‖onehot(y) − W x‖² + λ ‖W‖² least. R is not written down at each sample; see
    ``verse.kernels.running_inverse``.

    Parameters
    ----------
    F
        The plastic network; only its start weights are used, for the features.
    memory
        Not used: no sample is kept.
    ridge
        λ.
    features
        What of a sample it looks at, as in ``FixedFeatures``.
    seed
        Random seed. Nothing here is random.

    >>> import torch
    >>> from verse.network.plastic import Head
    >>> learner = Ridge(Plastic(nn.Identity(), Head(2), z_shape=(2,)))
    >>> for t in range(8):
    ...     learner.learn_one(torch.eye(2)[t % 2] + 0.1 * (t // 2 % 2), t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "ridge"
    traits: ClassVar[Traits] = Traits(
        kind="streaming",
        subset_replay=None,
        fidelity="adapted",
        adaptation="samples come one at a time instead of in tasks; features have length one, so "
        "that one λ fits every backbone; no random expansion layer before it, which ranpac has.",
    )
    STATE: ClassVar[tuple[str, ...]] = ("regression",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        ridge: Annotated[float, about("penalty λ of the squared weights", above=0)] = 0.1,
        features: FeatureChoice = "embedding",
        seed: int = 0,
    ) -> None:
        require_settings(Ridge, locals())
        super().__init__(F, None, seed=seed)
        self.ridge, self.features = ridge, features
        self.fixed = FixedFeatures(features, self.theta)
        self.regression = RunningRidge(self.fixed.d, ridge, self.device)

    def step(self, z: Tensor, y: int) -> None:
        x = normalize(self.fixed(z))[0]
        self.require_finite(x)
        self.regression.add(x, y)

    def logits(self, Z: Tensor) -> Tensor:
        return normalize(self.fixed(Z)) @ self.regression.weights.t()

    def network(self) -> nn.Module:
        weight = self.regression.weights
        F = self.fixed.network(weight, weight.new_zeros(len(weight)))
        return nn.Sequential(F.body, UnitLength(), F.head)
