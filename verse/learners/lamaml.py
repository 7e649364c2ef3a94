"""Look-ahead MAML: learn the weights and their learning rates from one step ahead."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.network.vector import Vector
from verse.settings import DrawsOrNone, about


class LaMAML(Learner):
    """Look-ahead MAML: a meta-gradient on replayed samples adapts learning rates and weights.

    G. Gupta, K. Yadav, L. Paull, "La-MAML: look-ahead meta learning for continual learning",
    NeurIPS 2020. With a rate a_i for every parameter, g = ∇ CE(z_t, y_t; θ) and
    g' = ∇ CE({(z_t, y_t)} ∪ C draws; θ − a ⊙ g), taken at the adapted point (first order)::

        a ← a + eta · g' ⊙ g                (the meta-loss falls along −g' ⊙ g)
        θ ← θ − max(0, a) ⊙ g'              (with the new rates)

    ``lr`` is every rate's start value; ``eta`` = 0 keeps the rates fixed, which is C-MAML.
    ``clip`` bounds every element of g, and the norms of g' and of g' ⊙ g. Adapted: a stream brings
    one sample, so there is one inner step; second-order terms are left out.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = LaMAML(F, Reservoir(10), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "la-maml"
    traits: ClassVar[Traits] = Traits(
        kind="online",
        batch_size="≫ 1",
        buffer="≤ 5 %",
        fidelity="adapted",
        adaptation="one inner step, because a step brings one sample; first order; one head for "
        "all classes instead of one per task",
    )
    STATE: ClassVar[tuple[str, ...]] = ("rates",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Annotated[float, about("start value of every learning rate", above=0)] = 0.01,
        eta: Annotated[
            float, about("learning rate of the learning rates; 0: fixed", least=0)
        ] = 0.25,
        C: DrawsOrNone = 16,
        clip: Annotated[
            float | None, about("bound on gradients; none: not clipped", above=0)
        ] = 2.0,
        seed: int = 0,
    ) -> None:
        require_settings(LaMAML, locals())
        super().__init__(F, memory, seed=seed)
        self.lr, self.eta, self.C, self.clip = lr, eta, C, clip
        self.memory: Memory = memory
        self.rates = Vector(self.theta.layout, self.device)
        for slot in self.rates.layout.slots[:-2]:  # the head's rows get theirs when they appear
            slot.view(self.rates.data).fill_(lr)
        self.ahead = self.theta.copy()  # storage only, overwritten in every step

    def new_output(self, output: int) -> None:
        views = self.rates.layout.views(self.rates.data)
        rows = views["head.weight"][output], views["head.bias"][output]
        self.protect(*rows)
        for row in rows:
            row.fill_(self.lr)

    def step(self, z: Tensor, y: int) -> None:
        theta, ahead, rates = self.theta, self.ahead, self.rates
        new = torch.tensor([y], device=self.device)

        # one step ahead with the rates as they are: θ − a ⊙ ∇ CE(new; θ)
        _, g = theta.gradient(z, cross_entropy(new), move_stats=False)
        g = g.clone() if self.clip is None else g.clamp(-self.clip, self.clip)
        ahead.step_from(theta, rates.data * g, 1.0)

        # what the new sample and memory say there
        old = self.memory.sample(self.C)
        _, meta = ahead.gradient(torch.cat((z, old.z)), cross_entropy(torch.cat((new, old.y))))
        slope = g.mul_(meta).neg_()  # d meta-loss / d rates
        scale, slope_scale = self.clip_scale(meta, self.clip), self.clip_scale(slope, self.clip)

        # rates first, then the weights with the new rates, never a negative one
        rates.data.add_(slope, alpha=-self.eta * slope_scale)
        theta.data.addcmul_(rates.data.clamp(min=0), meta, value=-scale)
        theta.stats.copy_(ahead.stats)
        theta.sync()
        self.memory.add(z[0], y)
