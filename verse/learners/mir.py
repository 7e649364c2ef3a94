"""MIR: replay of what the new sample would spoil most."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy as losses_of

from verse.kernels.losses import cross_entropy
from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import Clip, DrawsOrNone, Rate, about


class MIR(Learner):
    """Replay of the stored samples whose loss a step on the new sample would raise most.

    R. Aljundi et al., "Online continual learning with maximally interfered retrieval", NeurIPS
    2019 (the variant that replays stored samples, ER-MIR). With ℓ the cross-entropy::

        θ_v = θ − lr ∇ ℓ(z_t, y_t; θ)
        M   = the C of ``candidates`` draws with the largest ℓ(z, y; θ_v) − ℓ(z, y; θ)
        θ ← θ − lr ∇ ℓ({(z_t, y_t)} ∪ M; θ)

    Parameters
    ----------
    F
        The plastic network.
    memory
        What it replays from.
    lr
        Learning rate of both steps.
    candidates
        Samples drawn to choose from.
    C
        Samples replayed in a step.
    clip
        Largest norm of a gradient, in both steps.
    seed
        Random seed.

    >>> from verse.memory import Reservoir
    >>> from verse.network.plastic import Head
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = MIR(F, Reservoir(10), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t // 10], t // 10)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "mir"
    traits: ClassVar[Traits] = Traits(
        kind="online",
        batch_size="≫ 1",
        buffer="≤ 5 %",
        fidelity="adapted",
        adaptation="batches of one; gradients are clipped, as those of the other methods here",
    )

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.01,
        candidates: Annotated[int, about("samples drawn to choose from", least=1)] = 50,
        C: DrawsOrNone = 16,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(MIR, locals())
        super().__init__(F, memory, seed=seed)
        self.lr, self.candidates, self.C, self.clip = lr, candidates, C, clip
        self.memory: Memory = memory
        self.ahead = self.theta.copy()  # θ_v: storage only, overwritten in every step

    def step(self, z: Tensor, y: int) -> None:
        new = torch.tensor([y], device=self.device)
        drawn = self.memory.sample(self.candidates)
        Z, labels = drawn.z, drawn.y
        if len(drawn) > self.C:
            _, g = self.theta.gradient(z, cross_entropy(new), move_stats=False)
            self.ahead.step_from(self.theta, g, self.lr * self.clip_scale(g, self.clip))
            worse = losses_of(self.ahead.scores(Z), labels, reduction="none")
            worse -= losses_of(self.theta.scores(Z), labels, reduction="none")
            most = worse.argsort(descending=True, stable=True)[: self.C]
            Z, labels = Z[most], labels[most]
        _, g = self.theta.gradient(torch.cat((z, Z)), cross_entropy(torch.cat((new, labels))))
        self.descend(g, self.lr, self.clip)
        self.memory.add(z[0], y)
