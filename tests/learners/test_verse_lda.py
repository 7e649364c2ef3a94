"""VERSE with statistics: VERSE's network, unchanged, plus a discriminant analysis of quarters."""

from __future__ import annotations

import torch

from verse.checks import small_network
from verse.kernels.discriminant import lda, within_class
from verse.kernels.moments import PENDING
from verse.learners import VERSE, VERSELDA
from verse.learners.shared.quarters import Quarters
from verse.memory import ClassBalanced

CLASSES = 3


def _stream(F, n=40):
    g = torch.Generator().manual_seed(0)
    y = torch.arange(n) % CLASSES
    return torch.randn(n, *F.z_shape, generator=g) + y.view(-1, *[1] * len(F.z_shape)), y.tolist()


def _taught(method, F, **settings):
    learner = method(F, ClassBalanced(12), seed=5, **settings)
    for z, y in zip(*_stream(F), strict=True):
        learner.learn_one(z, y)
    return learner


def test_its_network_is_that_of_verse() -> None:
    F = small_network()
    assert torch.equal(_taught(VERSELDA, F).theta.data, _taught(VERSE, F).theta.data)


def test_scores_are_the_networks_plus_those_of_every_block() -> None:
    F = small_network()
    learner = _taught(VERSELDA, F, shrinkage=0.2, temperature=0.5, weight=0.7)
    Z, y = _stream(F)
    blocks = Quarters(F.z_shape)(Z)
    assert blocks.shape[1] == 4
    test = torch.randn(10, *F.z_shape)
    expected = 0.7 * _taught(VERSE, F).logits(learner.F.stored(test)).double()
    for b in range(4):
        means, covariance = within_class(blocks[:, b], torch.tensor(y), CLASSES)
        scale = covariance.diagonal().mean()
        weight, bias = lda(means, covariance / scale, 0.2)
        of_block = Quarters(F.z_shape)(test)[:, b].double()
        expected += (
            (of_block @ weight.double().t() + bias.double())
            / scale
            / (0.5 * blocks[0].numel() ** 0.5)
        )
    assert torch.allclose(learner.logits(learner.F.stored(test)).double(), expected, rtol=1e-3)


def test_quarters_tell_where() -> None:
    maps = torch.zeros(2, 1, 7, 7)
    maps[0, 0, :3, :3], maps[1, 0, 4:, 4:] = 1, 1  # the same thing in opposite corners
    first, second = Quarters((1, 7, 7))(maps)
    assert torch.allclose(first[0], second[0])  # the sum is the same
    assert torch.allclose(first[1:3], -second[1:3])  # above, left: the other way round
    assert torch.allclose(first.norm(), torch.tensor(1.0))


def test_a_class_is_known_from_its_first_sample() -> None:
    """Statistics answer with a class at once; VERSE needs its samples to enter memory."""
    F = small_network()
    learner = _taught(VERSELDA, F)
    new = torch.full(F.z_shape, -4.0)
    new[0] = 9.0
    learner.learn_one(new, 77)
    assert learner.predict_one(new) == 77


def test_statistics_count_as_memory() -> None:
    F = small_network()
    extra = _taught(VERSELDA, F).memory_bytes - _taught(VERSE, F).memory_bytes
    c = F.z_shape[0]
    assert extra == 4 * (4 * c * c + (CLASSES + PENDING) * 4 * c) + 8 * CLASSES


def test_exported_network_gives_the_same_scores() -> None:
    F = small_network()
    learner = _taught(VERSELDA, F)
    test = torch.randn(6, *F.z_shape)
    scores = learner.logits(learner.F.stored(test))
    assert torch.allclose(learner.network()(test), scores, rtol=1e-4, atol=1e-4)


def test_forgetting_leaves_nothing_of_the_class_alone_behind() -> None:
    F = small_network()
    learner = _taught(VERSELDA, F)
    covariance = learner.moments.scatter / learner.moments.counts.sum()
    means = learner.moments.means.clone()
    gone = learner.labels.index(1)
    learner.forget(1)
    others = [output for output in range(len(means)) if output != gone]
    assert torch.equal(learner.moments.means, means[others])
    assert len(learner.moments.counts) == len(others)
    assert torch.allclose(learner.moments.scatter / learner.moments.counts.sum(), covariance)
    assert bool(torch.isfinite(learner.logits(learner.F.stored(torch.randn(3, *F.z_shape)))).all())
