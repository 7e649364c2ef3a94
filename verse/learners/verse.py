"""VERSE: virtual-gradient-aware streaming learning."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from verse.kernels.losses import cross_entropy, mse
from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.linear import LinearStep
from verse.network.net import Net
from verse.network.plastic import Plastic
from verse.network.vector import stochastic_ema
from verse.settings import Clip, about, share
from verse.types import Batch

PREDICTORS = ("theta", "phi")


class VERSE(Learner):
    """A virtual step with the new sample, then a correction with samples from memory.

    S. Banerjee et al., "VERSE: virtual-gradient aware streaming lifelong learning with anytime
    inference", ICRA 2024. With D_v = {(z_t, y_t)} ∪ C draws, D_M and D_l of C draws each::

        θ_v = θ − α ∇_θ CE(D_v; θ)
        θ   ← θ − β ∇_θv [ CE(D_M; θ_v) + λ MSE(F_θv(D_l), F_Φ(D_l)) ]
        Φ   ← γ Φ + (1 − γ) θ   with probability r

    First order: nothing is differentiated through the virtual step. ``clip`` bounds the norm of
    both gradients; the paper has none (None), but a live classifier must not diverge.
    ``predict_with`` is "theta" as in the paper, or "phi".

    >>> from verse.network.plastic import Head
    >>> from verse.memory import ClassBalanced
    >>> F = Plastic(torch.nn.Identity(), Head(4), z_shape=(4,))
    >>> learner = VERSE(F, ClassBalanced(20))
    >>> for t in range(40):
    ...     learner.learn_one(torch.eye(4)[t % 2] * 3, t % 2)
    >>> learner.predict_one(torch.eye(4)[1] * 3)
    1
    """

    name: ClassVar[str] = "verse"
    traits: ClassVar[Traits] = Traits(kind="streaming", buffer="≤ 5 %")
    STATE: ClassVar[tuple[str, ...]] = ("phi",)
    NEW_IN_GLOBAL: ClassVar[bool] = False  # is the new sample in D_M, too?

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        alpha: Annotated[float, about("learning rate of the virtual step", least=0)] = 0.005,
        beta: Annotated[float, about("learning rate of the global step", above=0)] = 0.01,
        lam: Annotated[float, about("weight of the distillation", least=0)] = 0.3,
        gamma: Annotated[float, share("decay of the average Φ")] = 0.9,
        r: Annotated[float, share("probability of an update of Φ after a step")] = 0.05,
        C: Annotated[int, about("samples in each of the three replay batches", least=1)] = 16,
        clip: Clip = 1.0,
        predict_with: Annotated[
            str, about("weights that answer: θ or Φ", one_of=PREDICTORS)
        ] = "theta",
        seed: int = 0,
    ) -> None:
        require_settings(VERSE, locals())
        super().__init__(F, memory, seed=seed)
        self.alpha, self.beta, self.lam, self.gamma, self.r = alpha, beta, lam, gamma, r
        self.C, self.clip, self.predict_with = C, clip, predict_with
        self.memory: Memory = memory
        self.phi = self.theta.copy()
        self.linear = LinearStep.of(self.theta)  # where F is linear
        if self.linear is None:
            self.virtual = self.theta.copy()  # θ_v: storage only, overwritten in every step

    def step(self, z: Tensor, y: int) -> None:
        self._train(z, y)
        self.memory.add(z[0], y)

    def _train(self, z: Tensor, y: int) -> None:
        """One update of θ and perhaps of Φ."""
        update = self._update if self.linear is None else self._update_linear
        loss_v, loss = update(z, y)
        pairs = ((self.phi.data, self.theta.data), (self.phi.stats, self.theta.stats))
        if stochastic_ema(pairs, gamma=self.gamma, r=self.r, random=self.random):
            self.phi.sync()
        self.losses = {"loss_v": loss_v, "loss": loss}

    def _update(self, z: Tensor, y: int) -> tuple[float, float]:
        theta, virtual, phi, memory = self.theta, self.virtual, self.phi, self.memory

        # the virtual step: θ_v = θ − α ∇ CE(D_v; θ), the new sample in D_v
        D_v = memory.sample_with(z, y, self.C)
        loss_of_v = cross_entropy(D_v.y)
        if self.alpha:
            loss_v, g = theta.gradient(D_v.z, loss_of_v, move_stats=False)
            virtual.step_from(theta, g, self.alpha * self.clip_scale(g, self.clip))
        else:  # θ_v = θ: its gradient has no use
            loss_v, _ = loss_of_v(theta.scores(D_v.z))
            virtual = theta

        # the global step: the gradient at θ_v, on memory alone, applied to θ;
        # at the very first sample memory is that sample
        D_l, D_M = memory.samples(self.C, 2) if len(memory) else (D_v, D_v)
        if self.NEW_IN_GLOBAL and len(memory):
            D_M = Batch(torch.cat((z, D_M.z)), torch.cat((D_v.y[:1], D_M.y)))
        distil = mse(phi.scores(D_l.z), self.lam)
        loss, g = virtual.joint_gradient(D_M.z, cross_entropy(D_M.y), D_l.z, distil)
        self.descend(g, self.beta, self.clip)
        theta.stats.copy_(virtual.stats)
        return float(loss_v), float(loss)

    def _update_linear(self, z: Tensor, y: int) -> tuple[float, float]:
        """The same for a linear F, without automatic differentiation and without θ_v."""
        memory, step = self.memory, self.linear
        assert step is not None
        in_v, in_l, in_M = (memory.draw_slots(self.C) for _ in range(3))
        # rows: D_l, D_M, the new sample, the others of D_v
        k, new = len(in_l) or 1, np.array([y])
        E = step.rows(2 * k + 1 + len(in_v))
        E[2 * k] = z.numpy().reshape(-1)
        if len(memory):
            y_M = memory.gather(np.concatenate((in_l, in_M)), E[: 2 * k])[k:]
            y_v = np.concatenate((new, memory.gather(in_v, E[2 * k + 1 :])))
            if self.NEW_IN_GLOBAL:
                y_M = np.concatenate((y_M, new))
        else:
            E[:2] = E[2]
            y_M = y_v = new
        return step.look_ahead(
            k, y_M, y_v, self.phi, alpha=self.alpha, beta=self.beta, lam=self.lam, clip=self.clip
        )

    @property
    def _answering(self) -> Net:
        return self.theta if self.predict_with == "theta" else self.phi

    def logits(self, Z: Tensor) -> Tensor:
        return self._answering.scores(Z)

    def network(self) -> nn.Module:
        return self._answering.freeze()
