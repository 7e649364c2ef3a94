"""FeCAM equals its formulas, computed by NumPy from all samples at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from verse.checks import small_network
from verse.learners import FeCAM

D, CLASSES = 6, 3


def data(n: int = 240, seed: int = 0) -> tuple[torch.Tensor, list[int]]:
    """Positive features whose classes have covariances of their own."""
    g = torch.Generator().manual_seed(seed)
    centres = 2 + 2 * torch.rand(CLASSES, D, generator=g)
    mixes = 0.5 * torch.randn(CLASSES, D, D, generator=g)
    y = [7 * t % CLASSES if t % 5 else 0 for t in range(n)]
    noise = torch.randn(n, 1, D, generator=g) @ mixes[y]
    return (centres[y] + noise[:, 0]).abs() + 0.01, y


def taught(X: torch.Tensor, y: list[int], **settings) -> FeCAM:
    learner = FeCAM(small_network("linear"), **settings)
    for row, label in zip(X, y, strict=True):
        learner.learn_one(row, label)
    return learner


def shrunk(S: np.ndarray, gamma1: float, gamma2: float) -> np.ndarray:
    diagonal = np.eye(D, dtype=bool)
    return S + np.where(diagonal, gamma1 * S[diagonal].mean(), gamma2 * S[~diagonal].mean())


def distances(
    X: np.ndarray, y: np.ndarray, Q: np.ndarray, beta: float, gamma1: float, gamma2: float
) -> np.ndarray:
    """Squared distances [n, classes] of the rows of Q, class by class as in the paper."""

    def unit(x):
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    found = []
    for k in range(CLASSES):
        own = X[y == k]
        S = np.cov((own**beta).T)
        S = shrunk(shrunk(S, gamma1, gamma2), gamma1, gamma2)
        R = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
        gap = unit(Q**beta) - unit(own.mean(0) ** beta)
        found.append(np.einsum("ni,ij,nj->n", gap, np.linalg.pinv(R), gap))
    return np.stack(found, 1)


@pytest.mark.parametrize(
    ("beta", "gamma1", "gamma2"), [(0.5, 1.0, 1.0), (1.0, 1.0, 0.0), (0.3, 0.1, 0.05)]
)
def test_scores_equal_the_batch_solution(beta: float, gamma1: float, gamma2: float) -> None:
    X, y = data()
    learner = taught(X, y, beta=beta, gamma1=gamma1, gamma2=gamma2)
    Q, _ = data(seed=5)
    expected = distances(X.double().numpy(), np.array(y), Q.double().numpy(), beta, gamma1, gamma2)[
        :, learner.labels
    ]
    assert np.allclose(learner.logits(Q).double(), -0.5 * expected, rtol=1e-3, atol=1e-4)
    assert torch.allclose(learner.network()(Q), learner.logits(Q), atol=1e-5)


def test_classes_of_one_mean_are_told_by_their_spread() -> None:
    """What neither the nearest mean nor a common covariance can do."""
    g = torch.Generator().manual_seed(2)
    y = [t % 2 for t in range(400)]
    shared = torch.randn(400, 1, generator=g)
    first = 0.3 * torch.randn(400, D, generator=g)
    directions = torch.tensor([[1.0, 1, 1, -1, -1, -1], [1.0, -1, 1, -1, 1, -1]])
    X = 5 + first + shared * directions[y]
    learner = taught(X[:200], y[:200], gamma1=0.05, gamma2=0.0, beta=1.0)
    right = sum(a == b for a, b in zip(learner.predict_many(X[200:]), y[200:], strict=True))
    assert right >= 150


def test_order_of_the_stream_does_not_matter() -> None:
    X, y = data()
    order = [i for k in range(CLASSES) for i in range(len(y)) if y[i] == k]
    one, other = taught(X, y), taught(X[order], [y[i] for i in order])
    columns = [other.labels.index(label) for label in one.labels]
    assert torch.allclose(one.logits(X), other.logits(X)[:, columns], atol=1e-4)


def test_negative_features_keep_their_sign() -> None:
    X, y = data()
    a, b = taught(X, y), taught(-X, y)
    assert torch.allclose(a.logits(X), b.logits(-X), atol=1e-5)


def test_the_first_sample_of_a_class_is_compared_by_plain_distance() -> None:
    learner = FeCAM(small_network("linear"), beta=1.0)
    eye = torch.eye(D)
    for k in range(3):
        learner.learn_one(eye[k], k)
    gap = torch.cdist(eye[:1], eye[:3]).square()
    assert torch.allclose(learner.logits(eye[:1]), -0.5 * gap, atol=1e-6)


def test_merging_classes_is_as_if_they_had_been_one() -> None:
    X, y = data()
    merged = taught(X, y)
    merged.merge(2, into=1)
    one = taught(X, [1 if label == 2 else label for label in y])
    columns = [one.labels.index(label) for label in merged.labels]
    assert torch.allclose(merged.logits(X), one.logits(X)[:, columns], rtol=1e-3, atol=1e-4)


def test_a_metric_is_made_again_only_for_the_class_that_learned(monkeypatch) -> None:
    X, y = data()
    learner = taught(X, y)
    learner.predict_many(X)
    made, make = [], learner.build_metric

    def counted(scatter):
        made.append(1)
        return make(scatter)

    monkeypatch.setattr(learner, "build_metric", counted)
    learner.learn_one(X[0], y[0])
    learner.predict_many(X)
    learner.predict_many(X)
    assert len(made) == 1


def test_memory_grows_with_classes_alone() -> None:
    X, y = data()
    learner = taught(X, y)
    assert learner.memory_bytes == 4 * CLASSES * (D * D + 2 * D)
