"""LwF: learning without forgetting."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.distillation import tempered_cross_entropy
from verse.kernels.losses import add_losses, cross_entropy
from verse.learners.base import Learner, require_settings
from verse.learners.shared.trigger import DEFAULT, Trigger, When, task_traits
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import Clip, Rate, about


class LwF(Learner):
    """Distillation: on new samples the outputs for old classes stay as they were.

    Z. Li and D. Hoiem, "Learning without forgetting", ECCV 2016. With s = F_θ(z_t), ŝ the scores
    of a copy of the network from the last trigger and K the classes it knew::

        θ ← θ − lr ∇ [ CE(s, y_t) − α Σ_{k ∈ K} softmax(ŝ/T)_k log softmax(s/T)_k ]

    Adapted: a task's end is the ``trigger``; one growing head, so the cross-entropy is over all
    classes seen, where the authors train each task's own head.

    >>> from verse.network.plastic import Head
    >>> learner = LwF(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "lwf"
    traits: ClassVar[Traits] = task_traits(
        "a trigger stands for the end of a task; one head for all classes; batches of one"
    )
    STATE: ClassVar[tuple[str, ...]] = ("clock", "teacher", "known", "learned")

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        alpha: Annotated[float, about("weight of the distillation", least=0)] = 0.5,
        T: Annotated[float, about("temperature of the distillation", above=0)] = 2.0,
        trigger: When = DEFAULT,
        lr: Rate = 0.01,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(LwF, locals())
        super().__init__(F, None, seed=seed)
        self.alpha, self.T, self.trigger, self.lr, self.clip = alpha, T, trigger, lr, clip
        self.clock = Trigger(trigger)
        self.teacher = self.theta.copy()
        self.known = 0  # outputs the teacher knows
        self.learned = 0  # outputs that had a sample before this one

    def step(self, z: Tensor, y: int) -> None:
        if self.clock.due(y):
            self.protect(self.teacher.data, self.teacher.stats)
            self.remember()
        loss = cross_entropy(torch.tensor([y], device=self.device))
        if self.known:
            target = self.teacher.scores(z)[:, : self.known]
            loss = add_losses(loss, tempered_cross_entropy(target, self.T, self.alpha))
        _, g = self.theta.gradient(z, loss)
        self.descend(g, self.lr, self.clip)
        self.learned = len(self.labels)

    def drop_output(self, output: int, into: int | None) -> None:
        self.known -= output < self.known
        self.learned -= output < self.learned

    def remember(self) -> None:
        self.teacher.assign(self.theta)
        self.known = self.learned  # an output that has just arrived knows nothing to teach

    @torch.no_grad()
    def consolidate(self) -> None:
        if self.clock.due_at_event():
            self.remember()
