"""Every learner goes through 240 real frames, class by class and mixed; its answers are finite."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from verse import backbones, datasets, learners, memory, streams
from verse.evaluate import Samples, Tested, stream
from verse.streams import Schedule

FRAMES = 240
QUICK = {"epochs": 2, "passes": 2}  # consolidations are learned elsewhere; here they only run


@pytest.fixture(scope="module")
def eth80(real_data):
    """(F on pooled features, training frames, some test frames)."""
    data = datasets.load(f"folder:{real_data('eth80')}", holdout="last:3", every=7)
    backbone = backbones.build("efficientnet-lite0", at="fc")
    keep = np.sort(np.random.default_rng(0).permutation(len(data.train))[:FRAMES])
    sides = []
    for frames in (data.train.take(keep), data.test.take(np.arange(0, len(data.test), 2))):
        z = torch.cat([backbone.G([frames.read(i)]) for i in range(len(frames))])
        sides.append((frames, Samples(z, frames.labels, frames.videos)))
    return backbone.F, *sides


@pytest.mark.parametrize("order", ["class-instance", "instance"])
@pytest.mark.parametrize("name", learners.names())
def test_finishes(eth80, name: str, order: str) -> None:
    F, (frames, train), (_, test) = eth80
    shown = train.take(streams.order(order, frames.labels, frames.videos, frames.frames, seed=0))
    settings = {k: v for k, v in QUICK.items() if k in learners.settings(name)}
    learner = learners.build(name, F, memory.get("reservoir")(24), **settings)
    events = list(stream(learner, shown, test, Schedule.of(order, shown.y, every=4, steps=2)))
    alpha = [event.accuracy for event in events if isinstance(event, Tested)]
    assert learner.samples == FRAMES and len(alpha) == 2
    assert all(bool(torch.isfinite(t.double()).all()) for t in learner.state().values())
    assert alpha[-1] >= 1 / 8  # no worse than always the same answer
