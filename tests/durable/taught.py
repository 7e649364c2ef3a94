"""Streams of small features, classifiers on disk that learn them, and what they should be."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

import verse
from verse import backbones, durable
from verse.classifier import StreamClassifier

DIM = 6
State = dict[str, torch.Tensor]


def stream(n: int, classes: int = 4, seed: int = 0) -> list[tuple[torch.Tensor, str]]:
    rng = np.random.default_rng(seed)
    return [
        (torch.from_numpy(rng.normal(size=DIM).astype(np.float32)), f"class {t * classes // n}")
        for t in range(n)
    ]


def opened(path: Path, **options) -> durable.DurableClassifier:
    return verse.open(path, backbone=backbones.identity((DIM,)), **options)


def state(classifier: StreamClassifier) -> State:
    return {k: v.clone() for k, v in classifier.learner.state().items()}


def same(a: StreamClassifier | State, b: StreamClassifier | State) -> bool:
    a, b = (x if isinstance(x, dict) else state(x) for x in (a, b))
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def clean(samples, learner: str | None = None, **options) -> StreamClassifier:
    """A run that was never interrupted."""
    chosen = {"learner": learner} if learner else {}
    classifier = StreamClassifier(backbone=backbones.identity((DIM,)), **chosen, **options)
    for z, label in samples:
        classifier.learn_feature(z, label)
    return classifier


def teach(path: Path, samples, **options) -> None:
    with opened(path, **options) as classifier:
        for z, label in samples:
            classifier.learn_feature(z, label)


def abandon(classifier: durable.DurableClassifier) -> None:
    """What a killed process leaves: no flush, no checkpoint, the lock released."""
    classifier.directory.close()


def entries(classifier: durable.DurableClassifier) -> int:
    """How many the journal holds."""
    return int(classifier.journal.database.rows("SELECT count(*) FROM entries")[0][0])


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 255, (32, 32, 3)).astype(np.uint8)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process may grow: the kernel refuses as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
