"""ExStream: merging conserves counts and means; the last layer learns from all prototypes."""

from __future__ import annotations

import pytest
import torch

from verse.checks import check_memory, small_network, small_stream
from verse.learners import ExStream
from verse.memory import ClassBalanced
from verse.memory.prototypes import NOBODY, Prototypes
from verse.network import Head, Plastic
from verse.types import Refused


def _linear(d: int) -> Plastic:
    return Plastic(torch.nn.Identity(), Head(d), z_shape=(d,))


def _offers(n: int, classes: int, d: int = 6, seed: int = 0) -> list[tuple[torch.Tensor, int]]:
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=g)
    return [(torch.randn(d, generator=g), int(y)) for y in labels]


def _filled(capacity: int, offers, **budget) -> Prototypes:
    memory = Prototypes(capacity, **budget)
    memory.allocate(torch.device("cpu"), z=offers[0][0].shape)
    for z, y in offers:
        memory.set_class_count(10)
        memory.add(z, y)
    return memory


def test_merging_conserves_counts_and_means() -> None:
    """For every class: counts sum to the samples seen, the weighted mean is that of the samples."""
    offers = _offers(300, 4)
    memory = _filled(20, offers)
    assert len(memory) == 20
    held = memory.all()
    for y in range(4):
        samples = torch.stack([z for z, label in offers if label == y])
        mine = held.y == y
        counts = held.extra["count"][mine]
        assert float(counts.sum()) == len(samples)
        mean = (held.z[mine] * counts.unsqueeze(1)).sum(0) / counts.sum()
        assert torch.allclose(mean, samples.mean(0), atol=1e-5)


def test_merges_the_two_closest_by_count() -> None:
    memory = _filled(3, [(torch.tensor([v]), 0) for v in (0.0, 10.0, 1.0)])
    memory.add(torch.tensor([20.0]), 0)  # 0 and 1 merge to 0.5, twice
    memory.add(torch.tensor([3.5]), 0)  # 10 and 20 are farther apart than 0.5 and 10
    means, counts = memory.all().z.view(-1).tolist(), memory.all().extra["count"].tolist()
    held = sorted(zip(means, counts, strict=True))
    assert held == [(3.5, 1.0), (pytest.approx((2 * 0.5 + 10) / 3), 3.0), (20.0, 1.0)]


def test_room_comes_from_the_largest_class() -> None:
    memory = _filled(6, [(torch.randn(2), 0) for _ in range(6)])
    for _ in range(3):
        memory.add(torch.randn(2), 1)
    assert memory.counts() == {0: 3, 1: 3}


def test_budget_per_class_merges_inside_the_class() -> None:
    memory = Prototypes(per_class=3)
    memory.allocate(torch.device("cpu"), z=(2,))
    memory.set_class_count(2)
    for y, n in ((0, 10), (1, 2)):
        for _ in range(n):
            memory.add(torch.randn(2), y)
    assert memory.counts() == {0: 3, 1: 2}


def test_fewer_slots_than_classes() -> None:
    """With one prototype a class, a sample joins its class; a new class takes another's place."""
    memory = _filled(2, [(torch.tensor([0.0]), 0), (torch.tensor([4.0]), 1)])
    memory.add(torch.tensor([2.0]), 0)
    assert sorted(memory.all().z.view(-1).tolist()) == [1.0, 4.0]
    assert memory.all().extra["count"].tolist() == [2.0, 1.0]
    memory.add(torch.tensor([9.0]), 2)
    assert len(memory) == 2 and 2 in memory.counts()


@pytest.mark.parametrize("capacity", [5, 23])
def test_neighbours_equal_brute_force(capacity: int) -> None:
    """The neighbours kept step by step are those of all pairs."""
    memory = Prototypes(capacity)
    memory.allocate(torch.device("cpu"), z=(3,))
    for step, (z, y) in enumerate(_offers(200, 3, d=3, seed=1)):
        memory.add(z, y)
        if step == 120:
            memory.discard(1)
        held = memory.all()
        gaps = torch.cdist(held.z, held.z, compute_mode="donot_use_mm_for_euclid_dist")
        gaps[held.y.unsqueeze(1) != held.y] = NOBODY
        gaps.fill_diagonal_(NOBODY)
        assert torch.allclose(held.extra["gap"], gaps.min(1).values)
        alone = held.extra["gap"] == NOBODY
        assert torch.equal(held.extra["near"][alone], torch.full((int(alone.sum()),), -1))
        near = gaps[torch.arange(len(held))[~alone], held.extra["near"][~alone]]
        assert torch.allclose(near, held.extra["gap"][~alone])


def test_conforms_as_a_memory() -> None:
    check_memory(lambda capacity, seed: Prototypes(capacity, seed=seed))


def test_a_plan_changes_nothing() -> None:
    memory = _filled(6, _offers(20, 2))
    before = {k: v.clone() for k, v in memory.state().items() if k != "random"}
    z = torch.randn(6)
    plan = memory.plan(z, 1)
    assert all(torch.equal(v, memory.state()[k]) for k, v in before.items())
    index = torch.arange(6)
    expected, outputs = memory.rows_after(plan, index), memory.outputs_after(plan, 1)
    memory.carry_out(plan, 1)
    assert torch.equal(memory.all().z, expected) and torch.equal(memory.all().y, outputs)


def test_one_step_equals_a_hand_made_pass() -> None:
    """A pass over everything in one mini-batch is one gradient step on all prototypes."""
    F = _linear(3)
    learner = ExStream(F, ClassBalanced(50), lr=0.2, batch=50, clip=None)
    offers = _offers(8, 2, d=3)
    for z, y in offers[:-1]:
        learner.learn_one(z, y)
    head = learner.theta.layout.views(learner.theta.data)
    W = head["head.weight"][:2].clone().requires_grad_()
    b = head["head.bias"][:2].clone().requires_grad_()
    learner.learn_one(*offers[-1])
    X = torch.stack([z for z, _ in offers])
    y = torch.tensor([learner.labels.index(label) for _, label in offers])
    torch.nn.functional.cross_entropy(X @ W.t() + b, y).backward()
    assert torch.allclose(head["head.weight"][:2], W - 0.2 * W.grad, atol=1e-6)
    assert torch.allclose(head["head.bias"][:2], b - 0.2 * b.grad, atol=1e-6)


def test_only_the_last_layer_learns() -> None:
    F = small_network()
    learner = ExStream(F, ClassBalanced(24), lr=0.1)
    start = {n: p.clone() for n, p in F.named_parameters() if n.startswith("body")}
    for z, y in small_stream(F):
        learner.learn_one(z, y)
    now = learner.theta.layout.views(learner.theta.data)
    assert all(torch.equal(now[name], value) for name, value in start.items())


def test_a_refused_sample_leaves_the_prototypes() -> None:
    learner = ExStream(_linear(2), ClassBalanced(4), clip=None)
    for t in range(6):
        learner.learn_one(torch.randn(2), t % 2)
    before = {k: v.clone() for k, v in learner.state().items()}
    with pytest.raises(Refused):
        learner.learn_one(torch.full((2,), 3e38), 5)
    after = learner.state()
    assert all(torch.equal(before[k], after[k]) for k in before)


def test_bytes_of_a_prototype() -> None:
    learner = ExStream(small_network(), ClassBalanced(24))
    # six values, a count, the neighbour's distance and slot, the output
    assert learner.memory.item_bytes == 6 * 4 + 4 + 4 + 8 + 8


def test_merging_classes_links_their_prototypes() -> None:
    learner = ExStream(_linear(1), ClassBalanced(4))
    for value, y in ((0.0, 0), (9.0, 0), (1.0, 1), (20.0, 1)):
        learner.learn_one(torch.tensor([value]), y)
    assert learner.merge(1, into=0) == 2
    learner.learn_one(torch.tensor([50.0]), 0)  # 0 and 1 are now the closest of one class
    assert sorted(learner.memory.all().z.view(-1).tolist()) == [0.5, 9.0, 20.0, 50.0]


def test_half_precision_is_asked_about_what_is_stored() -> None:
    """Prototypes are embeddings: a large feature may have a small one, and the other way round."""

    class Scale(torch.nn.Module):
        def __init__(self, by: float) -> None:
            super().__init__()
            self.by = torch.nn.Parameter(torch.tensor(by))

        def forward(self, z: torch.Tensor) -> torch.Tensor:
            return self.by * z

    def learner(by: float) -> ExStream:
        F = Plastic(Scale(by), Head(2), z_shape=(2,))
        return ExStream(F, ClassBalanced(4, dtype="float16"))

    shrinks, grows = learner(0.01), learner(100.0)
    shrinks.learn_one(torch.full((2,), 1e5), 0)
    grows.learn_one(torch.ones(2), 0)
    with pytest.raises(Refused, match="100000 is too large for a memory of float16"):
        grows.learn_one(torch.full((2,), 1e3), 0)
    for each in (shrinks, grows):
        assert len(each.memory) == 1 and bool(torch.isfinite(each.memory.all().z).all())
