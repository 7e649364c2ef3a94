"""CLS-ER: replay with two slow copies of the network, one more plastic, one more stable."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import add_losses, cross_entropy, mse, stack_losses
from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.net import Net
from verse.network.plastic import Plastic
from verse.network.vector import stochastic_ema
from verse.settings import Clip, Draws, Rate, about, share

PREDICTORS = ("stable", "plastic", "theta")


class CLSER(Learner):
    """Replay with two averaged copies of the network, whose logits are targets.

    E. Arani, F. Sarfraz, B. Zonooz, "Learning fast, learning slow: a general continual learning
    method based on complementary learning system", ICLR 2022. For every replayed sample h is the
    logits of the copy, plastic (P) or stable (S), that gives its class the higher probability::

        θ ← θ − lr ∇ [ CE({(z_t, y_t)} ∪ M'; θ) + lam · MSE(F_θ(M'), h) ]
        P ← a P + (1 − a) θ  with probability plastic_rate,  a = min(1 − 1/(t+1), plastic_decay)
        S likewise with stable_rate and stable_decay

    The stable copy predicts. Only parameters are averaged; running statistics, where they move at
    all, are taken over from θ. The decays set a horizon of 1 / (rate · (1 − decay)) samples, which
    should be short compared with the stream.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = CLSER(F, Reservoir(10), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "cls-er"
    traits: ClassVar[Traits] = Traits(
        kind="batch",
        batch_size="≫ 1",
        single_pass=False,
        training_time="ζ(n)",
        buffer="≤ 5 %",
        violates_cisll=True,
    )
    STATE: ClassVar[tuple[str, ...]] = ("plastic", "stable")

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.01,
        lam: Annotated[float, about("weight of agreement with the copies", least=0)] = 0.1,
        plastic_rate: Annotated[float, share("probability of an update of the plastic copy")] = 0.9,
        plastic_decay: Annotated[float, share("decay of the plastic copy")] = 0.999,
        stable_rate: Annotated[float, share("probability of an update of the stable copy")] = 0.7,
        stable_decay: Annotated[float, share("decay of the stable copy")] = 0.999,
        C: Draws = 16,
        clip: Clip = 1.0,
        predict_with: Annotated[str, about("which network answers", one_of=PREDICTORS)] = "stable",
        seed: int = 0,
    ) -> None:
        require_settings(CLSER, locals())
        super().__init__(F, memory, seed=seed)
        self.lr, self.lam, self.C, self.clip = lr, lam, C, clip
        self.plastic_rate, self.plastic_decay = plastic_rate, plastic_decay
        self.stable_rate, self.stable_decay = stable_rate, stable_decay
        self.predict_with = predict_with
        self.memory: Memory = memory
        self.plastic = self.theta.copy()
        self.stable = self.theta.copy()

    def step(self, z: Tensor, y: int) -> None:
        old = self.memory.sample(self.C)
        Z = torch.cat((z, old.z))
        loss = cross_entropy(torch.cat((torch.tensor([y], device=self.device), old.y)))
        if len(old):
            near = mse(self.better(old.z, old.y), self.lam)
            loss = add_losses(loss, stack_losses(_nothing, 1, near))
        _, g = self.theta.gradient(Z, loss)
        self.descend(g, self.lr, self.clip)

        t = self.samples + 1
        self._follow(self.plastic, min(1 - 1 / (t + 1), self.plastic_decay), self.plastic_rate)
        self._follow(self.stable, min(1 - 1 / (t + 1), self.stable_decay), self.stable_rate)
        self.memory.add(z[0], y)

    def better(self, Z: Tensor, y: Tensor) -> Tensor:
        """For each row the logits of the copy that gives its class the higher probability."""
        plastic, stable = self.plastic.scores(Z), self.stable.scores(Z)
        column = y.view(-1, 1)
        p = torch.softmax(plastic, 1).gather(1, column)
        s = torch.softmax(stable, 1).gather(1, column)
        return torch.where(s > p, stable, plastic)

    def _follow(self, copy: Net, decay: float, rate: float) -> None:
        pairs = [(copy.data, self.theta.data)]
        if stochastic_ema(pairs, gamma=decay, r=rate, random=self.random):
            copy.stats.copy_(self.theta.stats)
            copy.sync()

    @property
    def _answering(self) -> Net:
        return {"stable": self.stable, "plastic": self.plastic, "theta": self.theta}[
            self.predict_with
        ]

    def logits(self, Z: Tensor) -> Tensor:
        return self._answering.scores(Z)

    def network(self) -> torch.nn.Module:
        return self._answering.freeze()


def _nothing(scores: Tensor) -> tuple[Tensor, Tensor]:
    """No loss on these rows."""
    return scores.new_zeros(()), torch.zeros_like(scores)
