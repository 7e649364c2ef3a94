"""SCR: replay with a contrastive loss, and answers by the nearest mean of what memory holds."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from verse.backbones.outputs import UnitLength, make_linear
from verse.kernels.contrast import supervised_contrast
from verse.kernels.randomness import Random
from verse.learners.base import Learner, require_settings
from verse.learners.shared.exemplar_means import ExemplarMeans, make_means_layer, score_means
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import Clip, Draws, Rate, about

PURPOSE = 4  # tells the start of P from other random numbers of the same seed


class SCR(Learner):
    """Replay draws classes together and pushes them apart; the nearest mean of memory answers.

    Z. Mai, R. Li, H. Kim, S. Sanner, "Supervised contrastive replay: revisiting the nearest class
    mean classifier in online class-incremental continual learning", CVPR workshops 2021. With e the
    embedding, φ = P e scaled to length one, B the new sample and C draws, and μ_c the mean of φ
    over what memory holds of class c, scaled likewise::

        L = − mean over i in B of mean over j ≠ i, y_j = y_i of
              log [ exp(φ_i·φ_j / τ) / Σ over k ≠ i of exp(φ_i·φ_k / τ) ]
        θ, P ← θ, P − lr ∇ L;   answer: argmin_c ‖φ − μ_c‖

    Parameters
    ----------
    F
        The plastic network; its last layer is not used.
    memory
        What it replays from and answers by.
    lr
        Learning rate.
    temperature
        τ.
    p
        Values of φ.
    C
        Samples replayed in a step.
    clip
        Largest norm of a gradient.
    seed
        Random seed.

    >>> from verse.memory import Reservoir
    >>> from verse.network.plastic import Head
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = SCR(F, Reservoir(10))
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "scr"
    traits: ClassVar[Traits] = Traits(
        kind="online",
        batch_size="≫ 1",
        buffer="≤ 5 %",
        fidelity="adapted",
        adaptation="memory holds features, not images, so there is no second, augmented view; the "
        "means are those of φ, where the authors take the embedding, which does not learn where F "
        "is linear; φ is linear in the embedding; batches of one.",
    )
    STATE: ClassVar[tuple[str, ...]] = ("projection",)
    ANSWERS_FROM_MEMORY: ClassVar[bool] = True

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.1,
        temperature: Annotated[float, about("temperature of the contrast", above=0)] = 0.07,
        p: Annotated[int, about("values of the projection", least=1)] = 128,
        C: Draws = 100,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(SCR, locals())
        super().__init__(F, memory, seed=seed)
        self.lr, self.temperature, self.p, self.C, self.clip = lr, temperature, p, C, clip
        self.memory: Memory = memory
        d = F.head.d
        drawn = Random(seed, PURPOSE).normal_tensor((p, d)) if p != d else torch.eye(d)
        self.projection = drawn.to(self.device) / d**0.5  # P: replaced, never written to
        self._means = ExemplarMeans()

    def step(self, z: Tensor, y: int) -> None:
        B = self.memory.sample_with(z, y, self.C)
        dP: list[Tensor] = []

        def contrast(e: Tensor) -> tuple[Tensor, Tensor]:
            value, de, by_P = supervised_contrast(e, self.projection, B.y, self.temperature)
            dP.append(by_P)
            return value, de

        _, g = self.theta.body_gradient(B.z, contrast)
        scale = self.clip_scale(torch.cat((g, dP[0].flatten())), self.clip)
        self.descend(g, self.lr * scale)
        self.projection = self.projection - self.lr * scale * dP[0]
        self.memory.add(z[0], y)

    def logits(self, Z: Tensor) -> Tensor:
        return score_means(self.project(Z), self._class_means())

    def network(self) -> nn.Module:
        P = make_linear(self.projection.clone(), self.projection.new_zeros(self.p))
        last = make_linear(*make_means_layer(self._class_means()))
        body = self.theta.freeze().body
        return nn.Sequential(body, P, UnitLength(), last).requires_grad_(False)

    def project(self, Z: Tensor) -> Tensor:
        """φ of features."""
        return normalize(self.theta.embed(Z) @ self.projection.t())

    def _class_means(self) -> Tensor:
        n, depends = len(self.labels), (self.theta.data, self.projection)
        return self._means(self.memory, n, self.p, self.project, *depends)
