"""EWC++: elastic weights by a running Fisher information."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.kernels.penalty import min_max
from verse.learners.base import require_settings
from verse.learners.shared.anchored import AnchoredLearner
from verse.learners.shared.trigger import DEFAULT, task_traits
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import about


class EWCPP(AnchoredLearner):
    """A quadratic penalty on weights that are important by their Fisher information.

    J. Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks", PNAS 2017; the
    running form is EWC++ of A. Chaudhry et al., "Riemannian walk for incremental learning",
    ECCV 2018. With g the gradient of the cross-entropy of one sample::

        F ← (1 − a) F + a · mean g²                       after every ``window`` samples
        Ω = (F − min F) / (max F − min F), θ* = θ          at the trigger
        θ ← θ − lr ∇ [ CE(z_t, y_t; θ) + λ Σ Ω (θ − θ*)² ]

    Adapted: a task's end is the ``trigger``; before the first window is full, the trigger takes
    the open one. The penalty is solved exactly (``penalty``, see ``AnchoredLearner``).

    >>> from verse.network.plastic import Head
    >>> learner = EWCPP(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "ewcpp"
    traits: ClassVar[Traits] = task_traits(
        "a trigger stands for the end of a task; the penalty solved exactly; batches of one"
    )
    STATE: ClassVar[tuple[str, ...]] = (*AnchoredLearner.STATE, "fisher", "squares", "filled")

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        lam: float = 10.0,
        a: Annotated[
            float, about("weight of the new window in the running mean", above=0, most=1)
        ] = 0.9,
        window: Annotated[int, about("samples in a window", least=1)] = 50,
        penalty: str = "implicit",
        trigger: str = DEFAULT,
        lr: float = 0.01,
        clip: float | None = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(EWCPP, locals())
        super().__init__(F, lam=lam, penalty=penalty, trigger=trigger, lr=lr, clip=clip, seed=seed)
        self.a, self.window = a, window
        self.fisher = self.zeros()
        self.squares = self.zeros()  # Σ g² of the open window
        self.filled = 0  # samples in it

    def step(self, z: Tensor, y: int) -> None:
        if self.clock.due(y):
            self.remember()
        _, g = self.theta.gradient(z, cross_entropy(torch.tensor([y], device=self.device)))
        self.descend_anchored(g)

        self.squares.data.addcmul_(g, g)
        self.filled += 1
        if self.filled == self.window:
            self.fisher.data.lerp_(self.squares.data / self.window, self.a)
            self.squares.data.zero_()
            self.filled = 0

    def remember(self) -> None:
        first = not bool(self.fisher.data.any())  # the scale of an open window is normalised away
        importance = (self.squares if first else self.fisher).data.clone()
        views = self.theta.layout.views(importance)
        n = self.theta.n  # the head's further rows do not exist yet
        min_max([v[:n] if name.startswith("head.") else v for name, v in views.items()])
        self.importance.data = importance
        self.anchor.data = self.theta.data.clone()
