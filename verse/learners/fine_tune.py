"""Fine-tuning: no defence against forgetting."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import Clip, Rate


class FineTune(Learner):
    """One SGD step on every sample: θ ← θ − lr ∇ CE(z_t, y_t; θ). The lower bound of a comparison.

    >>> from verse.network.plastic import Head
    >>> learner = FineTune(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "fine-tune"
    traits: ClassVar[Traits] = Traits(kind="streaming", subset_replay=None)

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        lr: Rate = 0.01,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(FineTune, locals())
        super().__init__(F, None, seed=seed)
        self.lr, self.clip = lr, clip

    def step(self, z: Tensor, y: int) -> None:
        _, g = self.theta.gradient(z, cross_entropy(torch.tensor([y], device=self.device)))
        self.descend(g, self.lr, self.clip)
