"""MAS: memory-aware synapses."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.learners.base import require_settings
from verse.learners.shared.anchored import AnchoredLearner
from verse.learners.shared.trigger import DEFAULT, task_traits
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic


def squared_norm(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Mean over the batch of ‖s‖² and its gradient; no label is involved.

    >>> value, grad = squared_norm(torch.tensor([[1.0, 2.0]]))
    >>> float(value), grad.tolist()
    (5.0, [[2.0, 4.0]])
    """
    n = scores.shape[0]
    return scores.square().sum() / n, scores * (2 / n)


class MAS(AnchoredLearner):
    """A quadratic penalty on weights to which the network's output is sensitive.

    R. Aljundi et al., "Memory aware synapses: learning what (not) to forget", ECCV 2018::

        Ω ← Ω + mean over the samples since the last trigger of |∂ ‖F_θ(z)‖² / ∂θ|,  θ* = θ
        θ ← θ − lr ∇ [ CE(z_t, y_t; θ) + λ Σ Ω (θ − θ*)² ]

    Adapted: a task's end is the ``trigger``. A stream is seen once, so each sample's sensitivity
    is measured when it arrives, at the weights of that moment, not at the end of its task. The
    penalty is solved exactly (``penalty``, see ``AnchoredLearner``).

    >>> from verse.network.plastic import Head
    >>> learner = MAS(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "mas"
    traits: ClassVar[Traits] = task_traits(
        "a trigger stands for the end of a task; importance is measured as samples pass; the "
        "penalty solved exactly"
    )
    STATE: ClassVar[tuple[str, ...]] = (*AnchoredLearner.STATE, "sensitivity", "measured")

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        lam: float = 1.0,
        penalty: str = "implicit",
        trigger: str = DEFAULT,
        lr: float = 0.01,
        clip: float | None = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(MAS, locals())
        super().__init__(F, lam=lam, penalty=penalty, trigger=trigger, lr=lr, clip=clip, seed=seed)
        self.sensitivity = self.zeros()  # Σ |∂ ‖F‖² / ∂θ| since the last trigger
        self.measured = 0  # samples in it

    def step(self, z: Tensor, y: int) -> None:
        if self.clock.due(y):
            self.remember()
        _, g = self.theta.gradient(z, squared_norm, move_stats=False)
        sensitivity = g.abs()
        _, g = self.theta.gradient(z, cross_entropy(torch.tensor([y], device=self.device)))
        self.descend_anchored(g)
        self.sensitivity.data.add_(sensitivity)
        self.measured += 1

    def remember(self) -> None:
        self.importance.data = self.importance.data + self.sensitivity.data / self.measured
        self.anchor.data = self.theta.data.clone()
        self.sensitivity.data = torch.zeros_like(self.sensitivity.data)
        self.measured = 0
