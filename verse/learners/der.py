"""Dark experience replay: keep the network's first logits of a sample as a target."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import Loss, cross_entropy, ragged_mse, scale_loss, stack_losses
from verse.learners.base import Learner, require_settings
from verse.learners.shared.answers import FIELDS, answer_fields, drop_answers
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic, head_capacity
from verse.settings import Clip, Draws, Rate, about

LATER = ("ignore", "lowest")


class DER(Learner):
    """Replay that keeps the logits of stored samples as targets.

    P. Buzzega et al., "Dark experience for general continual learning: a strong, simple baseline",
    NeurIPS 2020. With h the logits at insertion, from before the update, and two independent draws
    M', M'' of C samples::

        θ ← θ − lr ∇ [ CE(z_t, y_t) + alpha · MSE(F_θ(M'), h) + beta · CE(M'') ]

    ``beta`` = 0 is DER; DER++ has ``beta`` > 0. Adapted: here classes are not known in advance, so
    h is as long as the head was at insertion, and later outputs have no target. ``later`` says what
    becomes of them: "lowest" takes the lowest stored logit as target (in the authors' fixed head an
    unseen class also has a target, and a low one), "ignore" compares on the stored outputs alone.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = DER(F, Reservoir(10), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "der"
    traits: ClassVar[Traits] = Traits(
        kind="online",
        batch_size="≫ 1",
        buffer="≤ 5 %",
        fidelity="adapted",
        adaptation="classes are not known in advance: outputs that came after a sample was stored "
        "have its lowest stored logit as target (DER++: none)",
    )

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.01,
        alpha: Annotated[float, about("weight of the stored logits", least=0)] = 0.3,
        beta: Annotated[float, about("weight of the labels of a second draw", least=0)] = 0.0,
        later: Annotated[
            str, about("targets of stored logits for later classes", one_of=LATER)
        ] = "lowest",
        C: Draws = 16,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(DER, locals())
        super().__init__(F, memory, FIELDS, seed=seed)
        self.lr, self.alpha, self.beta, self.later = lr, alpha, beta, later
        self.C, self.clip = C, clip
        self.memory: Memory = memory

    def step(self, z: Tensor, y: int) -> None:
        theta, memory = self.theta, self.memory
        Z, loss = z, cross_entropy(torch.tensor([y], device=self.device))
        if len(memory):
            old = memory.sample(self.C)
            h, width = old.extra["logits"], old.extra["width"]
            Z, loss = torch.cat((Z, old.z)), stack_losses(loss, 1, self._distil(h, width))
        if len(memory) and self.beta:
            more = memory.sample(self.C)
            labels = scale_loss(cross_entropy(more.y), self.beta)
            Z, loss = torch.cat((Z, more.z)), stack_losses(loss, len(Z), labels)

        said: list[Tensor] = []  # what the network says of the new sample before it learns it

        def record_scores(scores: Tensor) -> tuple[Tensor, Tensor]:
            said.append(scores[:1].clone())
            return loss(scores)

        _, g = theta.gradient(Z, record_scores)
        self.descend(g, self.lr, self.clip)

        stored = answer_fields(memory, said[0])
        memory.add(z[0], y, logits=stored["logits"][0], width=stored["width"][0])

    def drop_output(self, output: int, into: int | None) -> None:
        drop_answers(self.memory, output)

    def _distil(self, h: Tensor, width: Tensor) -> Loss:
        """alpha × MSE to the stored logits h [n, columns], of which ``width`` existed."""
        if self.later == "lowest":
            columns = head_capacity(self.theta.n)  # h may be one growth of the head behind
            h = torch.nn.functional.pad(h, (0, columns - h.shape[1]))
            there = torch.arange(columns, device=h.device) < width.view(-1, 1)
            lowest = h.masked_fill(~there, torch.inf).amin(1, keepdim=True)
            lowest = lowest.where(lowest < torch.inf, 0.0)  # all it was compared with has left
            h, width = torch.where(there, h, lowest), torch.full_like(width, self.theta.n)
        return ragged_mse(h, width, self.alpha)
