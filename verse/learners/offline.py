"""Offline: ordinary training on everything at once, the upper bound of a comparison."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from verse.learners.base import Learner
from verse.learners.shared.training import Epochs, Ints, MaxEpochs, TrainingRecipe, train_on
from verse.learners.traits import Traits
from verse.memory.base import Memory
from verse.memory.everything import Everything
from verse.network.plastic import Plastic
from verse.settings import BatchSize, Clip, Momentum, Rate, WeightDecay


class Offline(Learner):
    """Keep every sample; train afresh on all of them when ``consolidate`` is called.

    The bound that streaming learners are measured against: SGD with momentum 0.9 from the start
    weights, at least ``epochs`` passes and until the training loss is flat. Between calls answers
    come from the latest training. Its memory has no bound.

    >>> from verse.network.plastic import Head
    >>> learner = Offline(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)))
    >>> for t in range(20):
    ...     learner.learn_one(torch.eye(2)[t // 10], t // 10)
    >>> learner.consolidate()
    >>> learner.predict_one(torch.eye(2)[0])
    0
    """

    name: ClassVar[str] = "offline"
    traits: ClassVar[Traits] = Traits(
        kind="batch",
        batch_size="≫ 1",
        fine_tuning=True,
        single_pass=False,
        subset_replay=False,
        training_time="ζ(n)",
        inference_time="ζ(n)",
        buffer="100 %",
        violates_cisll=True,
    )
    STATE: ClassVar[tuple[str, ...]] = ("trained_on",)

    def __init__(
        self,
        F: Plastic,
        memory: Memory | None = None,
        *,
        lr: Rate = 0.01,
        momentum: Momentum = 0.9,
        weight_decay: WeightDecay = 1e-4,
        batch: BatchSize = 256,
        epochs: Epochs = 10,
        max_epochs: MaxEpochs = 60,
        clip: Clip = 1.0,
        seed: int = 0,
    ) -> None:
        everything = Everything(seed=seed) if memory is None else Everything.like(memory)
        super().__init__(F, everything, seed=seed)
        self.recipe = TrainingRecipe(
            lr=lr,
            momentum=momentum,
            weight_decay=weight_decay,
            batch=batch,
            epochs=epochs,
            max_epochs=max_epochs,
            clip=clip,
        )
        self.lr, self.momentum, self.weight_decay = lr, momentum, weight_decay
        self.batch, self.epochs, self.max_epochs, self.clip = batch, epochs, max_epochs, clip
        self.memory: Memory = everything
        self.trained_on = [0, 0]  # samples learned and classes at the latest training

    def step(self, z: Tensor, y: int) -> None:
        self.memory.add(z[0], y)

    def consolidate(self) -> None:
        now = [self.samples, len(self.labels)]
        if len(self.memory) == 0 or now == self.trained_on:
            return

        def rows(index: Ints) -> Tensor:
            return self.memory.rows(torch.from_numpy(index).to(self.device)).z

        outputs = self.memory.fields["y"][: len(self.memory)].cpu().numpy()
        net, _, _ = train_on(self.F, rows, outputs, len(self.labels), self.seed, self.recipe, None)
        self.theta.assign(net)
        self.trained_on = now
