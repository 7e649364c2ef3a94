"""NCM: running means equal means, answers equal the nearest of them."""

from __future__ import annotations

import pytest
import torch

from verse.checks import small_network, small_stream
from verse.learners import NCM
from verse.types import Refused


def test_means_and_answers_equal_the_batch() -> None:
    F = small_network()
    learner = NCM(F)
    stream = small_stream(F, classes=4)
    for z, y in stream:
        learner.learn_one(z, y)
    E = F.body(torch.stack([z for z, _ in stream])).detach()
    y = torch.tensor([label - 10 for _, label in stream])
    means = torch.stack([E[y == k].mean(0) for k in range(4)])
    assert torch.allclose(learner.means, means, atol=1e-5)
    assert learner.memory_bytes == 4 * means.numel()
    nearest = torch.cdist(E, means).argmin(1) + 10
    assert learner.predict_many(torch.stack([z for z, _ in stream])) == nearest.tolist()


def test_agrees_with_scikit_learn() -> None:
    neighbours = pytest.importorskip("sklearn.neighbors")
    F = small_network("linear")
    learner = NCM(F)
    stream = small_stream(F, classes=5, seed=2)
    for z, y in stream:
        learner.learn_one(z, y)
    X, y = torch.stack([z for z, _ in stream]), [label for _, label in stream]
    test = 3 * torch.randn(500, 6, generator=torch.Generator().manual_seed(0))
    reference = neighbours.NearestCentroid().fit(X.numpy(), y)
    assert learner.predict_many(test) == reference.predict(test.numpy()).tolist()


def test_overflow_is_refused() -> None:
    learner = NCM(small_network())
    learner.learn_one(torch.ones(4, 3, 3), 0)
    with pytest.raises(Refused):
        learner.learn_one(torch.full((4, 3, 3), 3e38), 0)
    assert learner.counts == [1]


def test_merging_classes_merges_their_means() -> None:
    learner = NCM(small_network("linear"))
    for value, y in ((0.0, 0), (3.0, 1), (6.0, 1), (100.0, 2)):
        learner.learn_one(torch.full((6,), value), y)
    learner.merge(1, into=0)
    assert learner.means[0].tolist() == pytest.approx([3.0] * 6) and learner.counts[0] == 3
