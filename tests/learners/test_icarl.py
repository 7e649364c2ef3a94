"""iCaRL: herding, the nearest mean of exemplars, and sigmoids taught by labels and a teacher."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits, normalize, one_hot

from verse.checks import small_network, small_stream
from verse.learners import ICaRL
from verse.memory import Reservoir
from verse.memory.herding import Herding, find_redundant


def learned(n: int, kind: str = "conv", capacity: int = 12, **settings) -> tuple[ICaRL, list]:
    learner = ICaRL(small_network(kind), Reservoir(capacity), **{"lr": 0.05, **settings})
    stream = small_stream(learner.F)
    for z, y in stream[:n]:
        learner.learn_one(z, y)
    return learner, stream


# ---- herding ----------------------------------------------------------------------------------


def herd(points: list[tuple[float, float]], capacity: int, y: int = 0) -> Herding:
    memory = Herding(capacity)
    memory.allocate(torch.device("cpu"), z=(2,), e=(2,))
    for point in points:
        memory.add(torch.tensor(point), y, e=torch.tensor(point))
    return memory


def test_herding_keeps_the_pair_around_the_mean() -> None:
    # mean (0, 0): of the seven, only the opposite pair (±1, 0) averages to it with small norm
    points = [(3.0, 3.0), (1.0, 0.0), (-1.0, 0.0), (-3.0, -3.0), (0.0, 2.0), (0.0, -2.0)]
    memory = herd(points, capacity=2)
    kept = memory.all().z
    torch.testing.assert_close(kept.mean(0), torch.zeros(2))


def test_an_outlier_leaves_and_a_typical_sample_enters() -> None:
    memory = herd([(0.0, 1.0), (9.0, 0.0), (0.0, 0.9), (0.0, 1.1), *[(0.0, 1.0)] * 20], capacity=3)
    assert memory.all().z[:, 0].max() == 0


def test_what_leaves_is_the_best_of_all_choices() -> None:
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        E, mean = torch.randn(7, 3, generator=generator), torch.randn(3, generator=generator)
        subsets = list(itertools.combinations(range(7), 6))
        best = min(subsets, key=lambda s: float((E[list(s)].mean(0) - mean).norm()))
        assert {find_redundant(E, mean)} == set(range(7)) - set(best)


def test_merged_classes_have_one_mean() -> None:
    memory = herd([(1.0, 0.0), (3.0, 0.0)], capacity=4)
    memory.add(torch.zeros(2), 1, e=torch.tensor([8.0, 3.0]))
    assert memory.relabel(0, 1) == 2
    torch.testing.assert_close(memory.mean(1), torch.tensor([4.0, 1.0]))
    assert memory.state()["herd.classes"].tolist() == [1]


def test_a_newcomer_that_does_not_help_is_refused() -> None:
    memory = herd([(1.0, 0.0), (-1.0, 0.0)] * 10, capacity=2)
    assert memory.add(torch.tensor([50.0, 0.0]), 0, e=torch.tensor([0.9, 0.9])) is None


def test_classes_share_the_memory_equally() -> None:
    memory = herd([(float(i), 0.0) for i in range(10)], capacity=6)
    for y in (1, 2):
        for i in range(10):
            memory.add(torch.ones(2), y, e=torch.tensor([float(i), 1.0]))
    assert memory.counts() == {0: 2, 1: 2, 2: 2}


def test_the_class_mean_is_over_all_samples_not_only_those_kept() -> None:
    memory = herd([(float(i), 0.0) for i in range(9)], capacity=2)
    torch.testing.assert_close(memory.mean(0), torch.tensor([4.0, 0.0]))
    torch.testing.assert_close(memory.all().z.mean(0)[0], torch.tensor(4.0), atol=1.0, rtol=0)


def test_the_learner_herds_embeddings_of_length_one() -> None:
    learner, _ = learned(30)
    torch.testing.assert_close(learner.memory.all().extra["e"].norm(dim=1), torch.ones(12))


# ---- answers ----------------------------------------------------------------------------------


def test_nearest_mean_of_exemplars() -> None:
    learner, stream = learned(36)
    Z = learner.F.stored(torch.stack([z for z, _ in stream]))
    items = learner.memory.all()
    embedded = normalize(learner.theta.embed(items.z))
    means = torch.stack([normalize(embedded[items.y == c].mean(0), dim=0) for c in range(3)])
    e = normalize(learner.theta.embed(Z))
    distances = torch.stack([(e - m).square().sum(1) for m in means], 1)
    torch.testing.assert_close(learner.logits(Z), -distances, rtol=1e-4, atol=1e-5)


def test_answers_are_never_those_of_old_weights_or_exemplars() -> None:
    learner, stream = learned(20)
    Z = torch.stack([z for z, _ in stream])
    for z, y in stream[20:]:
        learner.predict_many(Z)  # keeps the class means
        learner.learn_one(z, y)
        fresh = ICaRL(small_network(), Reservoir(12), lr=0.05)
        fresh.load_state(learner.state())
        assert torch.equal(learner.predict_proba_many(Z), fresh.predict_proba_many(Z))
    other, _ = learned(36, seed=5)
    learner.load_state(other.state())
    assert torch.equal(learner.predict_proba_many(Z), other.predict_proba_many(Z))
    learner.forget(10)
    other.forget(10)
    assert torch.equal(learner.predict_proba_many(Z), other.predict_proba_many(Z))


def test_works_in_inference_mode() -> None:
    with torch.inference_mode():
        learner, stream = learned(30, kind="linear", capacity=100)
        before = learner.predict_proba_one(stream[0][0])
        learner.learn_one(stream[35][0], stream[0][1])  # moves the mean of another class
        assert learner.predict_proba_one(stream[0][0]) != before


def test_a_class_without_exemplars_is_the_last_to_answer() -> None:
    learner, stream = learned(36, capacity=1)
    scores = learner.logits(learner.F.stored(stream[0][0]))[0]
    there = next(iter(learner.memory.counts()))
    assert scores.argmax() == there and torch.isfinite(scores).all()


# ---- learning ---------------------------------------------------------------------------------


def test_targets() -> None:
    learner, stream = learned(30, trigger="event")
    learner.consolidate()  # the teacher knows three classes
    learner.learn_one(stream[0][0], 99)
    learner.learn_one(stream[1][0], 98)
    Z, y = learner.F.stored(torch.stack([z for z, _ in stream[:5]])), torch.tensor([0, 2, 3, 4, 1])
    target = learner.targets(Z, y)
    taught = torch.sigmoid(learner.teacher.scores(Z))
    for i, own in enumerate(y.tolist()):
        for k in range(5):
            expected = 1.0 if k == own else float(taught[i, k]) if k < 3 else 0.0
            assert target[i, k] == pytest.approx(expected)


def test_the_teacher_stands_still_between_triggers() -> None:
    learner, stream = learned(20, trigger="every:10")
    teacher = learner.teacher.data.clone()
    learner.learn_one(*stream[20])  # due: this sample starts the third ten
    assert not torch.equal(learner.teacher.data, teacher)
    teacher = learner.teacher.data.clone()
    for z, y in stream[21:24]:
        learner.learn_one(z, y)
    assert torch.equal(learner.teacher.data, teacher)


def test_update_against_autograd() -> None:
    learner, stream = learned(30, clip=None, trigger="every:12")
    z, y = stream[30]
    mark = learner.memory.random.mark()
    old = learner.memory.sample(16)
    learner.memory.random.undo(mark)
    Z = torch.cat((learner.F.stored(z), old.z))
    labels = torch.cat((torch.tensor([learner.labels.index(y)]), old.y))
    assert learner.known == 2
    target = one_hot(labels, 3).float()
    soft = torch.sigmoid(learner.teacher.scores(Z)[:, :2])
    target[:, :2] = torch.where(target[:, :2] > 0, 1.0, soft)
    twin = learner.theta.copy().module
    scores = twin(Z.permute(0, 3, 1, 2))
    loss = binary_cross_entropy_with_logits(scores, target, reduction="sum") / len(Z)
    parameters = dict(twin.named_parameters())
    grads = torch.autograd.grad(loss, list(parameters.values()))
    expected = {k: p - 0.05 * g for (k, p), g in zip(parameters.items(), grads, strict=True)}
    learner.learn_one(z, y)
    for name, value in learner.theta.layout.views(learner.theta.data).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-6)
