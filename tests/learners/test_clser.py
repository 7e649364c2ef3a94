"""CLS-ER: two copies with a rate each, and the better of them as teacher, sample by sample."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from verse.checks import small_network, small_stream
from verse.learners import CLSER
from verse.memory import Reservoir


def learned(n: int, **settings) -> tuple[CLSER, list]:
    learner = CLSER(small_network(), Reservoir(50), **{"lr": 0.05, **settings})
    stream = small_stream(learner.F)
    for z, y in stream[:n]:
        learner.learn_one(z, y)
    return learner, stream


def test_rates_are_independent() -> None:
    learner, stream = learned(10, plastic_rate=1.0, stable_rate=0.0)
    stable = learner.stable.data.clone()
    for z, y in stream[10:12]:
        before, t = learner.plastic.data.clone(), learner.samples + 1
        learner.learn_one(z, y)
        decay = min(1 - 1 / (t + 1), 0.999)
        torch.testing.assert_close(
            learner.plastic.data, decay * before + (1 - decay) * learner.theta.data
        )
    assert torch.equal(learner.stable.data, stable)


@pytest.mark.parametrize("name", ["plastic", "stable"])
def test_rate_is_the_share_of_steps_that_move(name: str) -> None:
    learner = CLSER(
        small_network("linear"), Reservoir(5), C=1, plastic_rate=0.8, stable_rate=0.2, seed=1
    )
    stream, moved = small_stream(learner.F, classes=2, each=200), 0
    for z, y in stream[::200] + stream:  # both classes from the start: one alone has no gradient
        before = getattr(learner, name).data.clone()
        learner.learn_one(z, y)
        moved += not torch.equal(before, getattr(learner, name).data)
    assert abs(moved / len(stream) - {"plastic": 0.8, "stable": 0.2}[name]) < 0.08


def test_decay_is_capped() -> None:
    learner, stream = learned(10, plastic_rate=1.0, plastic_decay=0.5)
    before = learner.plastic.data.clone()
    learner.learn_one(*stream[10])
    torch.testing.assert_close(learner.plastic.data, (before + learner.theta.data) / 2)


def test_teacher_is_picked_sample_by_sample() -> None:
    learner = CLSER(small_network("linear"), Reservoir(5))
    for y in (0, 1):
        learner.learn_one(torch.zeros(6), y)
    for net, good in ((learner.plastic, 0), (learner.stable, 1)):
        net.data.zero_()
        net.layout.views(net.data)["head.weight"][good, good] = 5.0
    Z = torch.eye(6)[:2] * 2  # the plastic copy knows the first, the stable one the second
    y = torch.tensor([0, 1])
    picked = learner.better(Z, y)
    assert torch.equal(picked[0], learner.plastic.scores(Z)[0])
    assert torch.equal(picked[1], learner.stable.scores(Z)[1])
    assert torch.equal(picked, torch.tensor([[10.0, 0.0], [0.0, 10.0]]))


def test_update_against_autograd() -> None:
    learner, stream = learned(30, lam=0.5, clip=None, plastic_decay=0.9, stable_decay=0.95)
    z, y = stream[30]
    mark = learner.memory.random.mark()
    old = learner.memory.sample(16)
    learner.memory.random.undo(mark)
    target = learner.better(old.z, old.y)

    twin = learner.theta.copy().module
    scores = twin(torch.cat((z[None], old.z.permute(0, 3, 1, 2))))
    labels = torch.cat((torch.tensor([learner.labels.index(y)]), old.y))
    loss = functional.cross_entropy(scores, labels)
    loss = loss + 0.5 * functional.mse_loss(scores[1:], target)
    parameters = dict(twin.named_parameters())
    grads = torch.autograd.grad(loss, list(parameters.values()))
    expected = {k: p - 0.05 * g for (k, p), g in zip(parameters.items(), grads, strict=True)}

    learner.learn_one(z, y)
    for name, value in learner.theta.layout.views(learner.theta.data).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-6)


def test_the_stable_copy_predicts() -> None:
    learner, stream = learned(20)
    Z = learner.F.stored(torch.stack([z for z, _ in stream]))
    assert torch.equal(learner.logits(Z), learner.stable.scores(Z))
    assert not torch.equal(learner.logits(Z), learner.theta.scores(Z))


def test_copies_start_equal_and_share_new_rows() -> None:
    learner, _ = learned(20, plastic_rate=0.0, stable_rate=0.0)
    rows = [n.layout.views(n.data)["head.weight"][:2] for n in (learner.plastic, learner.stable)]
    assert torch.equal(*rows) and rows[0].any()
