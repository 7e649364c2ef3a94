"""Experience replay: every new sample is learned together with a few old ones."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.linear import LinearStep
from verse.network.plastic import Plastic
from verse.settings import Clip, DrawsOrNone, Rate, about


class TinyER(Learner):
    """One SGD step on the new sample and C draws from memory; then the sample enters memory.

    A. Chaudhry et al., "On tiny episodic memories in continual learning", 2019::

        θ ← θ − lr ∇ CE({(z_t, y_t)} ∪ C draws; θ)

    ``steps`` > 1 repeats the update with fresh draws (for comparisons at equal compute).

    >>> import torch
    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = TinyER(F, Reservoir(10), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t // 10], t // 10)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "tinyer"
    traits: ClassVar[Traits] = Traits(kind="online", batch_size="≫ 1", buffer="≤ 5 %")

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.01,
        C: DrawsOrNone = 16,
        steps: Annotated[int, about("updates per sample, each with fresh draws", least=1)] = 1,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(TinyER, locals())
        super().__init__(F, memory, seed=seed)
        self.lr, self.C, self.steps, self.clip = lr, C, steps, clip
        self.memory: Memory = memory
        self.linear = LinearStep.of(self.theta)  # where F is linear

    def step(self, z: Tensor, y: int) -> None:
        if self.steps > 1:
            self.protect(self.theta.data)  # a later update may still be refused
        for _ in range(self.steps):
            if self.linear is not None:
                self._update_linear(self.linear, z, y)
                continue
            D = self.memory.sample_with(z, y, self.C)
            _, g = self.theta.gradient(D.z, cross_entropy(D.y))
            self.descend(g, self.lr, self.clip)
        self.memory.add(z[0], y)

    def _update_linear(self, step: LinearStep, z: Tensor, y: int) -> None:
        """The same update for a linear F, without automatic differentiation."""
        slots = self.memory.draw_slots(self.C)
        E = step.rows(1 + len(slots))
        E[0] = z.numpy().reshape(-1)
        old = self.memory.gather(slots, E[1:])
        step.replay(np.concatenate(([y], old)), lr=self.lr, clip=self.clip)
