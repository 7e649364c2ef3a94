"""GEM: gradient episodic memory."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.kernels.projection import solver, turn_from_all
from verse.learners.base import Learner, require_settings
from verse.learners.shared.trigger import DEFAULT, Trigger, When
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.memory.storage import Field
from verse.network.plastic import Plastic
from verse.settings import Clip, Rate, about


class GEM(Learner):
    """The gradient of the new sample, projected so that no past part of the stream gets worse.

    D. Lopez-Paz and M. Ranzato, "Gradient episodic memory for continual learning", NIPS 2017. With
    g the gradient of CE(z_t, y_t; θ) and G the gradients of past tasks' samples, one row each::

        if any (G g)_k < 0:  v = argmin_{v ≥ margin} ½ vᵀ G Gᵀ v + (G g)ᵀ v,   g ← Gᵀ v + g
        θ ← θ − lr g

    Adapted: a task is the stretch between two triggers. The memory's own rule decides what is
    kept, with the stretch it came from, where the authors divide it into rings for a known number
    of tasks. The number of rows is bounded: neighbouring stretches are put together until there
    are at most ``references``, and each row is the gradient of at most C draws.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = GEM(F, Reservoir(10), lr=0.5, trigger="every:5")
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "gem"
    traits: ClassVar[Traits] = Traits(
        kind="online",
        batch_size="≫ 1",
        class_incremental=False,
        buffer="-",
        violates_cisll=True,
        fidelity="adapted",
        adaptation="a trigger stands for the end of a task; a bounded number of references; "
        "the memory's own rule for rings per task; batches of one",
    )
    STATE: ClassVar[tuple[str, ...]] = ("clock", "stretch")

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        margin: Annotated[float, about("margin of the projection", least=0)] = 0.5,
        references: Annotated[int, about("past tasks to respect, at most", least=1)] = 10,
        trigger: When = DEFAULT,
        lr: Rate = 0.01,
        C: Annotated[int, about("samples drawn from each past task", least=1)] = 16,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(GEM, locals())
        solver()  # before anything is learned: it may not be installed
        super().__init__(F, memory, {"stretch": Field((), torch.int32)}, seed=seed)
        self.margin, self.references, self.trigger = margin, references, trigger
        self.lr, self.C, self.clip = lr, C, clip
        self.memory: Memory = memory
        self.clock = Trigger(trigger)
        self.stretch = 0  # triggers so far

    def step(self, z: Tensor, y: int) -> None:
        if self.clock.due(y):
            self.stretch += 1
        _, g = self.theta.gradient(z, cross_entropy(torch.tensor([y], device=self.device)))
        past = self.past()
        if past:
            g = g.clone()
            g = turn_from_all(g, torch.stack([self.reference(p) for p in past]), self.margin)
        self.descend(g, self.lr, self.clip)
        self.memory.add(z[0], y, stretch=torch.tensor(self.stretch))

    def past(self) -> list[Tensor]:
        """Slots of the samples of past stretches, grouped into at most ``references`` runs."""
        stretches = self.memory.fields["stretch"][: len(self.memory)].cpu().numpy()
        distinct = np.unique(stretches[stretches < self.stretch])
        runs = np.array_split(distinct, max(1, min(self.references, len(distinct))))
        return [
            torch.from_numpy(np.flatnonzero(np.isin(stretches, run))) for run in runs if len(run)
        ]

    def reference(self, slots: Tensor) -> Tensor:
        """The gradient of at most C of these samples."""
        drawn = slots[torch.from_numpy(self.random.draw(len(slots), self.C))]
        old = self.memory.rows(drawn.to(self.device))
        _, g = self.theta.gradient(old.z, cross_entropy(old.y), move_stats=False)
        return g.clone()

    @torch.no_grad()
    def consolidate(self) -> None:
        if self.clock.due_at_event():
            self.stretch += 1
