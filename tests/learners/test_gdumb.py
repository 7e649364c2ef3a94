"""GDumb: learns only in consolidate, afresh from the start weights, reproducibly."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from verse.checks import small_network, small_stream
from verse.kernels.mixing import cutmix
from verse.kernels.randomness import Random
from verse.learners import GDumb
from verse.learners.gdumb import warm_restarts
from verse.memory import GreedyBalanced, Reservoir
from verse.network.net import Net

BODY = ("body.conv.weight", "body.norm.weight", "body.norm.bias")


def learned(n: int = 24, **settings) -> GDumb:
    learner = GDumb(small_network(), Reservoir(20), **{"passes": 8, **settings})
    for z, y in small_stream(learner.F)[:n]:
        learner.learn_one(z, y)
    return learner


def body(net: Net) -> torch.Tensor:
    views = net.layout.views(net.data)
    return torch.cat([views[name].reshape(-1) for name in BODY])


def test_learning_one_sample_only_fills_memory() -> None:
    learner = learned(0)
    start = body(learner.theta).clone()
    for z, y in small_stream(learner.F):
        learner.learn_one(z, y)
        assert torch.equal(body(learner.theta), start)
        assert torch.equal(learner.trained.data, learner.theta.data)  # not even the head trains
    assert isinstance(learner.memory, GreedyBalanced) and len(learner.memory) == 20


def test_consolidate_starts_from_the_start_weights_every_time() -> None:
    often, once = learned(0), learned(0)
    for t, (z, y) in enumerate(small_stream(often.F)):
        often.learn_one(z, y)
        once.learn_one(z, y)
        if t % 10 == 9:
            often.consolidate()
    often.consolidate()
    once.consolidate()
    assert torch.equal(often.trained.data, once.trained.data)
    assert torch.equal(often.theta.data, once.theta.data)
    assert torch.equal(body(often.theta), body(Net(often.F)))  # θ is still θ₀
    assert not torch.equal(body(often.trained), body(often.theta))


def test_consolidate_follows_from_the_state_alone() -> None:
    learner = learned()
    saved = {k: v.clone() for k, v in learner.state().items()}
    resumed = learned(0)
    resumed.load_state(saved)
    learner.consolidate()
    first = learner.trained.data.clone()
    learner.consolidate()
    resumed.consolidate()
    assert torch.equal(first, learner.trained.data)
    assert torch.equal(first, resumed.trained.data)


def test_consolidate_does_not_disturb_the_stream() -> None:
    a, b = learned(12), learned(12)
    a.consolidate()
    for z, y in small_stream(a.F)[12:]:
        a.learn_one(z, y)
        b.learn_one(z, y)
    assert torch.equal(a.theta.data, b.theta.data)  # the rows of later classes are the same
    assert torch.equal(a.memory.all().z, b.memory.all().z)


def test_answers_before_the_first_and_between_two_calls() -> None:
    learner = learned(24)
    z = small_stream(learner.F)[0][0]
    before = learner.predict_proba_one(z)
    assert abs(sum(before.values()) - 1) < 1e-5  # the start weights with an untrained head
    learner.consolidate()
    after = learner.predict_proba_one(z)
    learner.learn_one(z, 10)
    assert learner.predict_proba_one(z) == after
    learner.learn_one(z, 999)  # a class that came after the training: known, untrained
    assert 999 in learner.predict_proba_one(z)


def test_an_interrupted_training_leaves_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learned()
    learner.consolidate()
    before = {k: v.clone() for k, v in learner.state().items()}
    learner.learn_one(*small_stream(learner.F)[23])
    monkeypatch.setattr(Net, "gradient", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        learner.consolidate()
    after = learner.state()
    assert all(torch.equal(before[k], after[k]) for k in before if k.startswith("trained."))


def test_an_empty_memory_trains_nothing() -> None:
    learner = learned(0)
    learner.consolidate()
    assert learner.predict_one(torch.zeros(learner.F.z_shape)) is None


def test_schedule_is_the_authors() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
        optimizer, T_0=1, T_mult=2, eta_min=0.0005
    )
    expected = [0.005]
    for epoch in range(1, 64):
        if epoch > 1:
            optimizer.step()
            schedule.step()
        expected.append(optimizer.param_groups[0]["lr"])
    assert [warm_restarts(e, 0.05, 0.0005) for e in range(64)] == pytest.approx(expected)


def test_training_against_torch() -> None:
    learner = learned(20, passes=3, mix=0.0, clip=0.5, weight_decay=0.01)
    twin = learner.theta.copy().module
    optimizer = torch.optim.SGD(twin.parameters(), lr=1.0, momentum=0.9, weight_decay=0.01)
    random = Random(learner.seed, 2, learner.samples)
    items = learner.memory.all()
    for epoch in range(3):
        optimizer.param_groups[0]["lr"] = warm_restarts(epoch, 0.05, 0.0005)
        order = torch.from_numpy(random.numpy.permutation(len(items)))
        for rows in order.split(16):
            random.uniform()
            optimizer.zero_grad()
            scores = twin(items.z[rows].permute(0, 3, 1, 2))
            functional.cross_entropy(scores, items.y[rows]).backward()
            torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
            optimizer.step()
    learner.consolidate()
    for name, value in learner.trained.layout.views(learner.trained.data).items():
        torch.testing.assert_close(value, twin.get_parameter(name).data, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("channels_last", [True, False])
def test_cutmix_share_is_what_is_left(channels_last: bool) -> None:
    n, shape = 6, (7, 7, 3) if channels_last else (3, 7, 7)
    own = torch.arange(n, dtype=torch.float32)
    Z = own.view(n, 1, 1, 1).expand(n, *shape).clone()
    for seed in range(20):
        mixed, partner, share = cutmix(Z, Random(seed), channels_last=channels_last)
        assert torch.equal(Z[:, 0, 0, 0], own) and mixed.shape == Z.shape
        expected = share * own + (1 - share) * own[partner]
        torch.testing.assert_close(mixed.mean((1, 2, 3)), expected, rtol=1e-4, atol=1e-4)
        assert all(
            set(m.unique().tolist()) <= {float(i), float(own[p])}
            for i, (m, p) in enumerate(zip(mixed, partner, strict=True))
        )


def test_vectors_are_mixed_as_a_whole() -> None:
    Z = torch.eye(4)
    mixed, partner, share = cutmix(Z, Random(0), channels_last=False)
    torch.testing.assert_close(mixed, share * Z + (1 - share) * Z[partner])
