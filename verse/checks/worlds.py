"""Small worlds that learners and memories are tried in, and how to compare their states."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from verse.learners.base import Learner
from verse.memory.base import Memory
from verse.memory.class_balanced import ClassBalanced
from verse.network import Head, Plastic

Stream = list[tuple[Tensor, int]]
"""Features with their labels, in order."""
LearnerMaker = Callable[[Plastic, Memory, int], Learner]
"""Builds the learner under test from F, a memory and a seed."""
CAPACITY = 16
"""Samples that the memory of a learner under test holds."""
EACH = 8
"""Samples of a class in most checks: three classes are more than fit into the memory."""


class _Body(nn.Module):
    """A convolution, a normalisation and a pooling: the parts real plastic networks are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 1, bias=False)
        self.norm = nn.BatchNorm2d(6)

    def forward(self, z: Tensor) -> Tensor:
        return torch.relu(self.norm(self.conv(z))).mean((2, 3))


def small_network(kind: str = "conv", seed: int = 0) -> Plastic:
    """A plastic network of a few hundred parameters: "conv" on 4×3×3 maps, "linear" on 6 values."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "linear":
            return Plastic(nn.Identity(), Head(6), z_shape=(6,))
        return Plastic(_Body(), Head(6), z_shape=(4, 3, 3), channels_last=True)


def small_stream(F: Plastic, classes: int = 3, each: int = 12, seed: int = 0) -> Stream:
    """Separable clusters, class after class."""
    generator = torch.Generator().manual_seed(seed)
    centres = 2.0 * torch.randn(classes, *F.z_shape, generator=generator)
    return [
        (centres[y] + 0.3 * torch.randn(F.z_shape, generator=generator), 10 + y)
        for y in range(classes)
        for _ in range(each)
    ]


def make_learner(make: LearnerMaker, F: Plastic | None = None, seed: int = 0) -> Learner:
    """The learner under test on a small network."""
    return make(F or small_network(), ClassBalanced(CAPACITY, seed=seed), seed)


def learn_all(learner: Learner, stream: Stream) -> None:
    """Learn a stream from beginning to end."""
    for z, y in stream:
        learner.learn_one(z, y)


def copy_state(learner: Learner) -> dict[str, Tensor]:
    """The state now, whatever is learned later."""
    return {name: tensor.clone() for name, tensor in learner.state().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor], what: str) -> None:
    """Two states have the same entries, and no bit of them differs."""
    assert a.keys() == b.keys(), f"{what}: other entries in the state: {a.keys() ^ b.keys()}"
    for name in a:
        equal = a[name].shape == b[name].shape and a[name].dtype == b[name].dtype
        bits_a, bits_b = (t.contiguous().reshape(-1).view(torch.uint8) for t in (a[name], b[name]))
        assert equal and torch.equal(bits_a, bits_b), f"{what}: {name} differs"
