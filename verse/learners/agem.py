"""A-GEM: averaged gradient episodic memory."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.kernels.projection import turn_from
from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import Clip, Draws, Rate


class AGEM(Learner):
    """The gradient of the new sample, projected so that the loss on memory does not rise.

    A. Chaudhry et al., "Efficient lifelong learning with A-GEM", ICLR 2019. With g the gradient of
    CE(z_t, y_t; θ) and r that of C draws from memory::

        g ← g − (g·r / r·r) r   if g·r < 0
        θ ← θ − lr g

    Adapted: the reference is drawn from all samples in memory, whose rule decides what is kept;
    the authors keep rings per task and draw from past tasks only, which needs tasks.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = AGEM(F, Reservoir(10), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "agem"
    traits: ClassVar[Traits] = Traits(
        kind="online",
        batch_size="≫ 1",
        class_incremental=False,
        buffer="-",
        violates_cisll=True,
        fidelity="adapted",
        adaptation="the reference is drawn from all of memory: no tasks are known; batches of one",
    )

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.01,
        C: Draws = 16,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(AGEM, locals())
        super().__init__(F, memory, seed=seed)
        self.lr, self.C, self.clip = lr, C, clip
        self.memory: Memory = memory

    def step(self, z: Tensor, y: int) -> None:
        _, g = self.theta.gradient(z, cross_entropy(torch.tensor([y], device=self.device)))
        if len(self.memory):
            g = g.clone()
            old = self.memory.sample(self.C)
            _, reference = self.theta.gradient(old.z, cross_entropy(old.y), move_stats=False)
            g = turn_from(g, reference)
        self.descend(g, self.lr, self.clip)
        self.memory.add(z[0], y)
