"""Recursive ridge regression equals ridge regression on the whole batch."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize, one_hot

from verse.checks import small_network, small_stream
from verse.learners import Ridge
from verse.types import BadSetting


def taught(order: list[int] | None = None, **settings) -> tuple[Ridge, torch.Tensor, torch.Tensor]:
    F = small_network()
    stream = small_stream(F, classes=4, each=40)
    learner = Ridge(F, **settings)
    for i in order or range(len(stream)):
        learner.learn_one(*stream[i])
    return learner, torch.stack([z for z, _ in stream]), torch.tensor([y for _, y in stream])


@pytest.mark.parametrize("features", ["embedding", "input"])
def test_scores_equal_the_batch_solution(features: str) -> None:
    learner, Z, y = taught(ridge=0.3, features=features)
    E = learner.F.body(Z).detach() if features == "embedding" else Z.mean((2, 3))
    X = normalize(E).double()
    A = X.t() @ X + 0.3 * torch.eye(X.shape[1]).double()
    W = torch.linalg.solve(A, X.t() @ one_hot(y - 10).double())
    scores = learner.logits(learner.F.stored(Z))
    assert torch.allclose(scores.double(), X @ W, atol=1e-4)
    assert torch.allclose(learner.network()(Z), scores, atol=1e-5)


def test_order_of_the_stream_does_not_matter() -> None:
    one, Z, _ = taught()
    other, _, _ = taught([(7 * t) % 160 for t in range(160)])
    columns = [other.labels.index(label) for label in one.labels]
    stored = one.F.stored(Z)
    assert torch.allclose(one.logits(stored), other.logits(stored)[:, columns], atol=1e-4)


def test_agrees_with_scikit_learn() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    learner, Z, y = taught(ridge=2.0)
    X = normalize(learner.F.body(Z).detach())
    reference = linear.Ridge(alpha=2.0, fit_intercept=False).fit(X, one_hot(y - 10))
    expected = torch.from_numpy(reference.predict(X)).float()
    assert torch.allclose(learner.logits(learner.F.stored(Z)), expected, atol=1e-4)


def test_a_penalty_of_zero_is_refused() -> None:
    with pytest.raises(BadSetting, match="ridge must be > 0"):
        Ridge(small_network(), ridge=0)
