"""ER-ACE: replay whose new samples do not push the old classes away."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.losses import Loss, cross_entropy
from verse.learners.base import Learner, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import Clip, DrawsOrNone, Rate, about


class ERACE(Learner):
    """Replay; the loss of a new sample uses only the classes of the current batch.

    L. Caccia et al., "New insights on reducing abrupt representation change in online continual
    learning", ICLR 2022. With K the classes of the new sample and of the ``recent`` − 1 samples
    before it, and M of C draws from memory::

        θ ← θ − lr ∇ [ CE(z_t, y_t; softmax over K) + CE(M; softmax over all classes) ]

    Adapted: a stream brings one sample, and a softmax over its own class alone teaches nothing.
    The latest samples stand for the authors' batch. While one class is shown, a new sample still
    moves nothing, and is learned when it is replayed: so it is with the authors' batches as well.

    Parameters
    ----------
    F
        The plastic network.
    memory
        What it replays from.
    lr
        Learning rate.
    recent
        Samples, the new one among them, whose classes are those of the present batch.
    C
        Samples replayed in a step.
    clip
        Largest norm of a gradient.
    seed
        Random seed.

    >>> from verse.memory import Reservoir
    >>> from verse.network.plastic import Head
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = ERACE(F, Reservoir(10), lr=0.5)
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t // 10], t // 10)
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "er-ace"
    traits: ClassVar[Traits] = Traits(
        kind="online",
        batch_size="≫ 1",
        buffer="≤ 5 %",
        fidelity="adapted",
        adaptation="a step brings one sample: the classes of the latest ones stand for those of "
        "a batch",
    )
    STATE: ClassVar[tuple[str, ...]] = ("latest",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Rate = 0.01,
        recent: Annotated[int, about("latest samples that stand for a batch", least=1)] = 10,
        C: DrawsOrNone = 16,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        require_settings(ERACE, locals())
        super().__init__(F, memory, seed=seed)
        self.lr, self.recent, self.C, self.clip = lr, recent, C, clip
        self.memory: Memory = memory
        self.latest: list[int] = []  # outputs of the latest samples, oldest first

    def step(self, z: Tensor, y: int) -> None:
        latest = [*self.latest, y][-self.recent :]
        new = cross_entropy_among(sorted(set(latest)), torch.tensor([y], device=self.device))
        old = self.memory.sample(self.C)
        if len(old):
            _, g = self.theta.joint_gradient(old.z, cross_entropy(old.y), z, new)
        else:
            _, g = self.theta.gradient(z, new)
        self.descend(g, self.lr, self.clip)
        self.latest = latest
        self.memory.add(z[0], y)

    def drop_output(self, output: int, into: int | None) -> None:
        moved = (into if o == output else o for o in self.latest)
        self.latest = [o - (o > output) for o in moved if o is not None]


def cross_entropy_among(classes: list[int], y: Tensor) -> Loss:
    """Cross-entropy with a softmax over some of the classes; the others are not moved.

    >>> value, grad = cross_entropy_among([0, 2], torch.tensor([2]))(torch.zeros(1, 3))
    >>> grad.tolist()
    [[0.5, 0.0, -0.5]]
    """

    def loss(scores: Tensor) -> tuple[Tensor, Tensor]:
        others = [c not in classes for c in range(scores.shape[1])]
        outside = torch.tensor(others, device=scores.device)
        return cross_entropy(y)(scores.masked_fill(outside, -torch.inf))

    return loss
