"""KLDA: linear discriminant analysis on random Fourier features."""

from __future__ import annotations

from typing import Annotated, ClassVar

from torch import Tensor, nn

from verse.backbones.outputs import make_linear
from verse.kernels.moments import Moments
from verse.learners.base import Learner, require_settings
from verse.learners.shared.fixed_features import FeatureChoice, FixedFeatures
from verse.learners.shared.random_features import Count, fourier_features
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import about


class KLDA(Learner):
    """Discriminant analysis in the space of a Gaussian kernel, by random features of it.

    S. Momeni, S. Mazumder, B. Liu, "Continual learning using a kernel-based method over foundation
    models", AAAI 2025. With e the features of a sample, of length one, Ω [M, d] normal of variance
    2 γ, b uniform in [0, 2 π) and δ = h − μ_y::

        h = √(2/M) cos(Ω e + b)                       hᵀh' ≈ exp(−γ ‖e − e'‖²)
        S ← S + n_y / (n_y + 1) δ δᵀ,   μ_y ← μ_y + δ / (n_y + 1),   n_y ← n_y + 1
        Λ = ((1 − ε) S / N + ε v I)⁻¹,   v = tr(S) / N M,   score_k = μ_kᵀ Λ h − ½ μ_kᵀ Λ μ_k

    Without a ``shrinkage`` ε is what ``verse.kernels.discriminant.oas`` says: that is RanDumb
    (A. Prabhu et al., "Random representations outperform online continually learned
    representations", NeurIPS 2024). Ω and b follow from the seed and are not saved.

    Parameters
    ----------
    F, memory
        Only the start weights of F are used, for the features; no sample is kept.
    M, gamma, shrinkage
        Random features; γ, near 0 it is discriminant analysis of the features themselves; ε.
    features
        What of a sample it looks at, as in ``FixedFeatures``.
    seed
        Random seed, of Ω and b.

    >>> import torch
    >>> from verse.network.plastic import Head
    >>> learner = KLDA(Plastic(nn.Identity(), Head(2), z_shape=(2,)), M=32)
    >>> for t in range(8):
    ...     learner.learn_one(torch.eye(2)[t % 2] + 0.1 * (t // 2 % 2), t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "klda"
    traits: ClassVar[Traits] = Traits(
        kind="streaming",
        subset_replay=None,
        fidelity="adapted",
        adaptation="the covariance is shrunk, where the authors take a pseudo-inverse; samples "
        "come one at a time; features have length one, so that one γ fits all backbones.",
    )
    STATE: ClassVar[tuple[str, ...]] = ("moments",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        M: Count = 2000,
        gamma: Annotated[float, about("width γ of the kernel exp(−γ d²)", above=0)] = 1.0,
        shrinkage: Annotated[
            float | None, about("shrinkage towards the mean variance; none: OAS", above=0, most=1)
        ] = None,
        features: FeatureChoice = "embedding",
        seed: int = 0,
    ) -> None:
        require_settings(KLDA, locals())
        super().__init__(F, None, seed=seed)
        self.M, self.gamma, self.shrinkage, self.features = M, gamma, shrinkage, features
        self.fixed = FixedFeatures(features, self.theta)
        self.expand = fourier_features(self.fixed.d, M, gamma, seed=seed).to(self.device)
        self.moments = Moments(1, M, self.device)

    def step(self, z: Tensor, y: int) -> None:
        h = self.expand(self.fixed(z))
        self.require_finite(self.moments.largest(h, y))
        self.moments.add(h, y)

    def logits(self, Z: Tensor) -> Tensor:
        weight, bias = self.moments.classifier(self.shrinkage, relative=True)
        scores: Tensor = self.expand(self.fixed(Z)) @ weight.t() + bias
        return scores

    def network(self) -> nn.Module:
        weight, bias = self.moments.classifier(self.shrinkage, relative=True)
        body = self.fixed.network(weight.new_zeros(1, self.fixed.d), weight.new_zeros(1)).body
        last = make_linear(weight.clone(), bias.clone())
        return nn.Sequential(body, self.expand, last).requires_grad_(False)
