"""BaSiL: the Bayesian update by hand, what is rehearsed, what is replaced, what stays."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from verse.checks import small_network, small_stream
from verse.learners import BaSiL
from verse.memory import Reservoir
from verse.memory.doubtful import Doubtful
from verse.network.net import Net
from verse.types import BadSetting


def learned(n: int, capacity: int = 40, **settings) -> tuple[BaSiL, list]:
    learner = BaSiL(small_network(), Reservoir(capacity), **{"lr": 0.05, **settings})
    stream = small_stream(learner.F)
    for z, y in stream[:n]:
        learner.learn_one(z, y)
    return learner, stream


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def inputs(learner: BaSiL, Z: torch.Tensor) -> np.ndarray:
    e = learner.theta.embed(Z).double().numpy()
    return np.concatenate((e, np.ones((len(e), 1))), 1)


def weights(learner: BaSiL) -> np.ndarray:
    state = learner.theta.state()
    return torch.cat((state["head.weight"], state["head.bias"][:, None]), 1).double().numpy().copy()


def test_one_update_by_hand() -> None:
    learner, stream = learned(30, lam=0.3, clip=None, C=6)
    z, y = stream[30]
    k, W, precision = learner.labels.index(y), weights(learner), learner.precision.double().numpy()
    mark = learner.memory.random.mark()
    old = learner.memory.rows(learner.choose())
    learner.memory.random.undo(mark)

    x = inputs(learner, torch.cat((learner.F.stored(z), old.z)))
    labels = np.array([k, *old.y.tolist()])
    p = softmax(x @ W.T)
    evidence = (p[0] * (1 - p[0]))[:, None] * x[0] ** 2
    ds = p.copy()
    ds[np.arange(len(labels)), labels] -= 1
    ds /= len(labels)
    width = old.extra["width"].numpy().astype(int)
    for i, (h, w) in enumerate(zip(old.extra["logits"].numpy(), width, strict=True), start=1):
        ds[i, :w] += 0.3 * 2 * ((x @ W.T)[i, :w] - h[:w]) / width.sum()
    expected = W - ds.T @ x / (precision + evidence)

    learner.learn_one(z, y)
    np.testing.assert_allclose(learner.precision.numpy(), precision + evidence, rtol=1e-4)
    np.testing.assert_allclose(weights(learner), expected, rtol=1e-3, atol=1e-5)


def test_evidence_is_counted_once_and_never_lost() -> None:
    learner, stream = learned(0)
    total = None
    for z, y in stream:
        learner.learn_one(z, y)
        assert torch.all(learner.precision >= 1 / learner.lr)
        if total is not None and total.shape == learner.precision.shape:
            assert torch.all(learner.precision >= total)
        total = learner.precision.clone()


def test_a_new_class_starts_from_the_prior() -> None:
    learner, _ = learned(20)
    assert learner.precision.shape == (2, 7)
    before = learner.precision.clone()
    learner.new_output(2)
    assert torch.equal(learner.precision[:2], before)
    torch.testing.assert_close(learner.precision[2], torch.full((7,), 20.0))


def test_the_body_never_moves() -> None:
    learner, _ = learned(36)
    start = Net(learner.F)
    for name, value in learner.theta.layout.views(learner.theta.data).items():
        if name.startswith("body."):
            assert torch.equal(value, start.layout.views(start.data)[name])


def test_rehearsal_takes_the_most_and_the_least_doubtful() -> None:
    learner, _ = learned(36, C=4)
    learner.memory.fields["doubt"][:36] = torch.arange(36.0)
    mark = learner.memory.random.mark()
    pool = learner.memory.draw(16)
    learner.memory.random.undo(mark)
    expected = sorted(pool.tolist())
    assert sorted(learner.choose().tolist()) == expected[:2] + expected[-2:]


def test_snapshots_are_renewed_at_every_visit() -> None:
    learner, stream = learned(36, C=6, by="loss")
    mark = learner.memory.random.mark()
    visited = learner.choose()
    learner.memory.random.undo(mark)
    others = [i for i in range(36) if i not in visited.tolist()]
    before = learner.memory.fields["logits"].clone()
    learner.learn_one(stream[0][0], stream[0][1])
    after = learner.memory.fields["logits"]
    assert torch.equal(before[others], after[others])
    scores = learner.theta.scores(learner.memory.rows(visited).z)
    torch.testing.assert_close(after[visited, :3], scores)
    loss = torch.nn.functional.cross_entropy(
        scores, learner.memory.fields["y"][visited], reduction="none"
    )
    torch.testing.assert_close(learner.memory.fields["doubt"][visited], loss, rtol=1e-4, atol=1e-6)


def test_what_is_well_known_is_replaced_first() -> None:
    left = 0
    for seed in range(200):
        memory = Doubtful(4, seed=seed)
        memory.allocate(torch.device("cpu"), z=(1,), doubt=())
        for i in range(4):
            memory.add(torch.tensor([float(i)]), 0, doubt=torch.tensor(3.0 if i else 0.0))
        left += memory.add(torch.zeros(1), 0, doubt=torch.zeros(())) == 0
    chance = 1 / (1 + 3 * math.exp(-3))
    assert abs(left / 200 - chance) < 0.08


def test_answers_are_moderated_by_their_variance() -> None:
    learner, stream = learned(36)
    Z = learner.F.stored(torch.stack([z for z, _ in stream[:5]]))
    x, W = inputs(learner, Z), weights(learner)
    variance = x**2 @ (1 / learner.precision.double().numpy()).T
    expected = x @ W.T / np.sqrt(1 + np.pi / 8 * variance)
    np.testing.assert_allclose(learner.logits(Z).numpy(), expected, rtol=1e-3, atol=1e-5)


def test_a_budget_in_bytes_that_shrinks_moves_no_snapshot_to_another_sample() -> None:
    learner = BaSiL(small_network(), Reservoir(byte_limit=6000))
    for z, y in small_stream(learner.F, classes=40, each=2):
        learner.learn_one(z, y)
        assert len(learner.memory) * learner.memory.item_bytes <= 6000
        width = learner.memory.fields["width"][: len(learner.memory)]
        assert torch.all(width >= learner.memory.fields["y"][: len(learner.memory)] + 1)


def test_settings_are_checked() -> None:
    with pytest.raises(BadSetting, match="by"):
        BaSiL(small_network(), Reservoir(5), by="luck")
