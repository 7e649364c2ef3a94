"""What EWC++, MAS and SI share: weights anchored where they were important."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from verse.backbones.plastic import Plastic
from verse.kernels.penalty import pull
from verse.kernels.vector import Vector
from verse.learners.base import Learner, require
from verse.learners.trigger import Trigger


class Anchored(Learner):
    """Abstract: SGD on CE(z_t, y_t; θ) + λ Σ Ω (θ − θ*)².

    A method writes ``step``, and ``remember``, which replaces (never writes into) Ω and θ*, so
    that a refused sample takes a consolidation back. Outputs that arrive later have Ω = 0.
    """

    STATE: ClassVar[tuple[str, ...]] = ("clock", "anchor", "importance")

    def __init__(
        self, F: Plastic, *, lam: float, trigger: str, lr: float, clip: float | None, seed: int
    ) -> None:
        super().__init__(F, None, seed=seed)
        require(lr > 0, f"lr must be > 0, not {lr}")
        require(lam >= 0, f"lam must be ≥ 0, not {lam}")
        require(clip is None or clip > 0, f"clip must be > 0 or None, not {clip}")
        self.lam, self.trigger, self.lr, self.clip = lam, trigger, lr, clip
        self.when = Trigger.parse(trigger)
        self.clock = Trigger.clock()
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
        if self.when.due_at_event(self.clock):
            self.remember()

    def pulled(self, gradient: Tensor) -> Tensor:
        """``gradient`` with the penalty's added, in place."""
        return pull(gradient, self.theta.data, self.anchor.data, self.importance.data, self.lam)
