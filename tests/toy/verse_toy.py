"""A world of points for tests: videos that drift, a backbone without a network, a slow learner."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from verse.backbones import Backbone, identity
from verse.datasets.base import Dataset, Frames, Source
from verse.experiments import reference
from verse.learners import TinyER
from verse.types import BadImage

SIZE = 6
if steps := os.environ.get("VERSE_TOY_OFFLINE"):  # in a process that a test has started, too
    reference.STEPS = int(steps)


class Points(Source):
    """Each class is a direction, each video an offset, each frame a little noise."""

    def __init__(self, labels: np.ndarray, videos: np.ndarray, seed: int, bad: int) -> None:
        random = np.random.default_rng(seed)
        centres = random.normal(size=(labels.max() + 1, SIZE)) * 2
        offsets = random.normal(size=(videos.max() + 1, SIZE)) * 0.5
        noise = random.normal(size=(len(labels), SIZE)) * 0.3
        self.z = (centres[labels] + offsets[videos] + noise).astype(np.float32)
        self.seed, self.bad = seed, bad
        self.reads = 0

    def read(self, i: int) -> np.ndarray:
        self.reads += 1
        if i < self.bad:
            raise BadImage(f"point {i} is damaged")
        return self.z[i]

    def key(self, i: int) -> str:
        return f"point {self.seed} {i}"


def load(
    classes: int = 4, videos: int = 3, frames: int = 8, seed: int = 0, bad: int = 0
) -> Dataset:
    """The last video of each class is test."""
    labels = np.repeat(np.arange(classes), videos * frames)
    ids = np.repeat(np.arange(classes * videos), frames)
    every = Frames(
        labels, ids, np.tile(np.arange(frames), classes * videos), Points(labels, ids, seed, bad)
    )
    test = ids % videos == videos - 1
    names = tuple(f"class{c}" for c in range(classes))
    return Dataset("points", names, every.take(~test), every.take(test))


def flat(at: str | None, precision: str, batchnorm: str) -> Backbone:
    """What comes in is a feature."""
    return identity(SIZE, precision=precision, batchnorm=batchnorm)


class Slow(TinyER):
    """Replay that takes its time, so that a test can kill it on the way.

    VERSE_TOY_STEP says how many seconds a step takes at least. On a cluster every step touches a
    file named after its node and process, where VERSE_TOY_NODES says, and the first waits until two
    nodes have one: both are in the middle of a run then. With a file "hurry" there nobody waits.
    """

    name: ClassVar[str] = "slow"

    def step(self, z, y):  # type: ignore[no-untyped-def]
        folder = os.environ.get("VERSE_TOY_NODES")
        if folder is None:
            time.sleep(float(os.environ.get("VERSE_TOY_STEP", "0.004")))
        elif not Path(folder, "hurry").exists():
            time.sleep(0.02)
            self._meet(Path(folder))
        super().step(z, y)

    def _meet(self, folder: Path) -> None:
        import ray

        mine = folder / f"{ray.get_runtime_context().get_node_id()}.{os.getpid()}"
        new = not mine.exists()
        mine.touch()
        while new and len({path.stem for path in folder.iterdir()}) < 2:
            time.sleep(0.02)
