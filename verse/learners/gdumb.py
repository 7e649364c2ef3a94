"""GDumb: collect greedily, learn only when asked."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from verse.kernels.interrupts import defer_interrupt
from verse.kernels.losses import add_losses, cross_entropy, scale_loss
from verse.kernels.mixing import cutmix
from verse.kernels.randomness import Random
from verse.learners.base import Learner, require, require_settings
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.memory.greedy_balanced import GreedyBalanced
from verse.network.net import Net
from verse.network.plastic import Plastic
from verse.settings import BatchSize, Clip, Momentum, WeightDecay, about, share


def warm_restarts(epoch: int, highest: float, lowest: float) -> float:
    """GDumb's rate in an epoch: one at a tenth, then cosines of 1, 2, 4, 8, … epochs.

    I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017.
    Powers of two epochs end at the end of a cosine.

    >>> [round(warm_restarts(epoch, 1.0, 0.0), 2) for epoch in range(6)]
    [0.1, 1.0, 1.0, 0.5, 1.0, 0.85]
    """
    if epoch == 0:
        return highest / 10
    length = 1 << (epoch.bit_length() - 1)  # the cosine that holds it starts at this very epoch
    return lowest + (highest - lowest) * (1 + math.cos(math.pi * (epoch - length) / length)) / 2


class GDumb(Learner):
    """A class-balanced memory; ``consolidate`` trains a new network on it.

    A. Prabhu, P. Torr, P. Dokania, "GDumb: a simple approach that questions our progress in
    continual learning", ECCV 2020. ``learn_one`` only fills the memory. ``consolidate`` starts
    again from the start weights θ₀ and goes over the memory ``passes`` times::

        v ← momentum · v + clip(∇ CE(CutMix(batch))) + weight_decay · θ;   θ ← θ − lr(epoch) · v

    with lr(epoch) from ``lr`` to ``lr_min`` by cosines with warm restarts. Between two calls the
    answers are those of the last one; before the first, of the start weights with an untrained
    head. Adapted: CutMix works on feature maps, and is mixup where features are vectors; the
    number of passes is smaller than the authors' 256, since F starts pretrained.

    >>> from verse.network.plastic import Head
    >>> from verse.memory import Reservoir
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = GDumb(F, Reservoir(10))
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t % 2], t % 2)
    >>> learner.consolidate()
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "gdumb"
    traits: ClassVar[Traits] = Traits(
        kind="online",
        batch_size="≫ 1",
        fine_tuning=True,
        single_pass=False,
        subset_replay=False,
        inference_time="ζ(n)",
        buffer="-",
        violates_cisll=True,
        fidelity="adapted",
        adaptation="CutMix on feature maps (mixup on vectors), because learners see features; "
        "fewer passes, because F starts pretrained",
    )
    STATE: ClassVar[tuple[str, ...]] = ("trained",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        lr: Annotated[float, about("highest learning rate of the schedule", above=0)] = 0.05,
        lr_min: Annotated[float, about("lowest learning rate of the schedule", above=0)] = 0.0005,
        momentum: Momentum = 0.9,
        weight_decay: WeightDecay = 1e-6,
        batch: BatchSize = 16,
        passes: Annotated[int, about("epochs over the replay buffer in a training", least=1)] = 64,
        mix: Annotated[float, share("probability of CutMix for a batch")] = 0.5,
        clip: Clip = 10.0,
        seed: int = 0,
    ) -> None:
        require_settings(GDumb, locals())
        super().__init__(F, GreedyBalanced.like(memory), seed=seed)
        require(lr_min <= lr, f"lr_min must be ≤ lr, not {lr_min} and {lr}")
        self.lr, self.lr_min, self.momentum, self.weight_decay = lr, lr_min, momentum, weight_decay
        self.batch, self.passes, self.mix, self.clip = batch, passes, mix, clip
        self.memory: Memory
        self.trained = self.theta.copy()  # θ stays at the start weights

    def step(self, z: Tensor, y: int) -> None:
        self.memory.add(z[0], y)

    @torch.no_grad()
    def consolidate(self) -> None:
        """Train afresh on the memory. The same state gives the same network, however often."""
        net = self.theta.copy()
        # its own numbers: how often it is called changes nothing that comes later in the stream
        random = Random(self.seed, 2, self.samples)
        v = torch.zeros_like(net.data)
        for epoch in range(self.passes if len(self.memory) else 0):
            lr = warm_restarts(epoch, self.lr, self.lr_min)
            order = torch.from_numpy(random.numpy.permutation(len(self.memory))).to(self.device)
            for start in range(0, len(order), self.batch):
                g = self._gradient(net, order[start : start + self.batch], random)
                v.mul_(self.momentum).add_(g).add_(net.data, alpha=self.weight_decay)
                net.data.add_(v, alpha=-lr)
                net.sync()
        with defer_interrupt():
            self.trained.assign(net)

    def _gradient(self, net: Net, rows: Tensor, random: Random) -> Tensor:
        items = self.memory.rows(rows)
        Z, loss = items.z, cross_entropy(items.y)
        if random.uniform() < self.mix:
            Z, partner, share = cutmix(Z, random, channels_last=self.F.channels_last)
            other = cross_entropy(items.y[partner])
            loss = add_losses(scale_loss(loss, share), scale_loss(other, 1 - share))
        _, g = net.gradient(Z, loss)
        return g.mul_(self.clip_scale(g, self.clip))

    def logits(self, Z: Tensor) -> Tensor:
        return self.trained.scores(Z)

    def network(self) -> torch.nn.Module:
        return self.trained.freeze()
