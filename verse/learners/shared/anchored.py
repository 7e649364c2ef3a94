"""What EWC++, MAS and SI share: weights anchored where they were important."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.penalty import add_penalty, settle
from verse.learners.base import Learner
from verse.learners.shared.trigger import Trigger, When
from verse.network.plastic import Plastic
from verse.network.vector import Vector
from verse.settings import Clip, Rate, about

PENALTIES = ("implicit", "explicit")


class AnchoredLearner(Learner):
    """Abstract: SGD on CE(z_t, y_t; θ) + λ Σ Ω (θ − θ*)².

    ``penalty="implicit"`` solves the quadratic penalty exactly after the step on the sample, whose
    gradient alone is clipped: important weights hold and the others are free to learn.
    ``penalty="explicit"`` is the authors' gradient of the sum, clipped as a whole; it overshoots
    where 2 lr λ Ω > 1. Where penalties are weak the two agree.

    A method writes ``step``, and ``remember``, which replaces (never writes into) Ω and θ*, so
    that a refused sample takes a consolidation back. Outputs that arrive later have Ω = 0.
    """

    STATE: ClassVar[tuple[str, ...]] = ("clock", "anchor", "importance")

    def __init__(
        self,
        F: Plastic,
        *,
        lam: Annotated[float, about("weight of the penalty", least=0)],
        penalty: Annotated[str, about("penalty: exact step, or its gradient", one_of=PENALTIES)],
        trigger: When,
        lr: Rate,
        clip: Clip,
        seed: int,
    ) -> None:
        super().__init__(F, None, seed=seed)
        self.lam, self.penalty, self.trigger, self.lr, self.clip = lam, penalty, trigger, lr, clip
        self.clock = Trigger(trigger)
        self.anchor = self.zeros()  # θ*
        self.importance = self.zeros()  # Ω

    def zeros(self) -> Vector:
        """A value per parameter, all zero."""
        return Vector(self.theta.layout, self.device)

    def remember(self) -> None:
        """Consolidate: new importances and anchors."""
        raise NotImplementedError

    @torch.no_grad()
    def consolidate(self) -> None:
        if self.clock.due_at_event():
            self.remember()

    def descend_anchored(self, g: Tensor) -> None:
        """One step on the loss, whose gradient is g, and the penalty; g is left as it is."""
        theta, anchor, importance = self.theta.data, self.anchor.data, self.importance.data
        if self.penalty == "explicit":
            g = add_penalty(g, theta, anchor, importance, self.lam)
        self.descend(g, self.lr, self.clip)
        if self.penalty == "implicit":
            settle(theta, anchor, importance, self.lam, self.lr)
            self.theta.sync()
