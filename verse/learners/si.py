"""SI: synaptic intelligence."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.learners.base import require_settings
from verse.learners.shared.anchored import AnchoredLearner
from verse.learners.shared.trigger import DEFAULT, task_traits
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import about


class SI(AnchoredLearner):
    """A quadratic penalty on weights whose changes have lowered the loss.

    F. Zenke et al., "Continual learning through synaptic intelligence", ICML 2017. With g the
    gradient of the cross-entropy alone and Δθ what the weights really moved::

        ω ← ω − g · Δθ                                         in every step
        Ω ← relu(Ω + ω / ((θ − θ*)² + ξ)),  ω ← 0,  θ* ← θ      at the trigger
        θ ← θ − lr ∇ [ CE(z_t, y_t; θ) + λ Σ Ω (θ − θ*)² ]

    Adapted: a task's end is the ``trigger``. A new output's path starts at its first weights. The
    penalty is solved exactly (``penalty``, see ``AnchoredLearner``).

    >>> from verse.network.plastic import Head
    >>> learner = SI(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "si"
    traits: ClassVar[Traits] = task_traits(
        "a trigger stands for the end of a task; the penalty solved exactly; batches of one"
    )
    STATE: ClassVar[tuple[str, ...]] = (*AnchoredLearner.STATE, "path")

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        lam: float = 0.1,
        xi: Annotated[float, about("damping of the division by small movements", above=0)] = 1e-3,
        penalty: str = "implicit",
        trigger: str = DEFAULT,
        lr: float = 0.01,
        clip: float | None = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(SI, locals())
        super().__init__(F, lam=lam, penalty=penalty, trigger=trigger, lr=lr, clip=clip, seed=seed)
        self.xi = xi
        self.anchor.data.copy_(self.theta.data)
        self.path = self.zeros()  # ω

    def step(self, z: Tensor, y: int) -> None:
        if self.clock.due(y):
            self.remember()
        _, g = self.theta.gradient(z, cross_entropy(torch.tensor([y], device=self.device)))
        before = self.theta.data.clone()
        self.descend_anchored(g)
        self.path.data.addcmul_(g, self.theta.data - before, value=-1)

    def remember(self) -> None:
        moved = self.theta.data - self.anchor.data
        gained = self.path.data / (moved.square() + self.xi)
        self.importance.data = (self.importance.data + gained).relu_()
        self.anchor.data = self.theta.data.clone()
        self.path.data = torch.zeros_like(self.path.data)

    def new_output(self, output: int) -> None:
        anchor = self.anchor.data.clone()
        for name in ("head.weight", "head.bias"):
            self.theta.layout.views(anchor)[name][output] = self.theta.layout.views(
                self.theta.data
            )[name][output]
        self.anchor.data = anchor
