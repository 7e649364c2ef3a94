"""What is measured: the default split, the deeper ones beside it, and features alone."""

from __future__ import annotations

import io

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from verse import backbones
from verse.backbones import Backbone, Plastic
from verse.configuration import DEFAULT_BACKBONE
from verse.learners import VERSE
from verse.memory import Memory, Reservoir

DEFAULT, HEAD = "default", "efficientnet-lite0"
SPLITS = {
    DEFAULT: (DEFAULT_BACKBONE, "grid"),
    HEAD: ("efficientnet-lite0", "head"),
    "resnet18": ("resnet18", "layer4.1"),
}
"""Case → (backbone, where F begins)."""
LIGHT = "light"
CASES = (*SPLITS, LIGHT)
CLASSES, STORED = 10, 100


def build_case(case: str, *, precision: str = "float32", threads: int | None = None) -> Backbone:
    """The backbone of a case, with random weights of the right shape: nothing is downloaded."""
    if case == LIGHT:
        return backbones.identity(512)
    name, at = SPLITS[case]
    return backbones.build(name, at=at, weights="random", precision=precision, threads=threads)


def features(F: Plastic, n: int = STORED) -> Tensor:
    """Random features of norm 10."""
    Z = torch.randn(n, *F.z_shape, generator=torch.Generator().manual_seed(0)).relu()
    length = torch.linalg.vector_norm(Z.flatten(1), dim=1)
    scale: Tensor = 10 / length.view(-1, *[1] * len(F.z_shape))
    return Z.mul_(scale)


def pictures(n: int = 8) -> list[bytes]:
    """JPEG files as a camera gives them: smooth with some texture."""
    random = np.random.default_rng(0)
    files = []
    for _ in range(n):
        small = random.integers(0, 256, (15, 20, 3), dtype=np.uint8)
        image = Image.fromarray(small).resize((320, 240), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        image.save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


def verse_learner(F: Plastic, Z: Tensor, memory: Memory | None = None) -> VERSE:
    """VERSE with ten classes and a memory in which every draw is full."""
    learner = VERSE(F, Reservoir(2 * STORED) if memory is None else memory)
    for y in range(CLASSES):
        learner.learn_one(Z[y], y)
    for t in range(CLASSES, len(Z)):
        learner.memory.add(learner.F.stored(Z[t])[0], t % CLASSES)
    return learner
