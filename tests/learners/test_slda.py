"""SLDA equals discriminant analysis on the whole batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from verse.checks import small_network
from verse.kernels.discriminant import lda, oas, within_class
from verse.kernels.moments import PENDING
from verse.learners import SLDA
from verse.learners.shared.grid_features import GridFeatures
from verse.network import Head, Plastic

D, CLASSES = 6, 4


def _data(n: int = 400, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Overlapping classes of different sizes with a common, correlated covariance."""
    g = torch.Generator().manual_seed(seed)
    mix = torch.randn(D, D, generator=torch.Generator().manual_seed(9))
    centres = torch.randn(CLASSES, D, generator=torch.Generator().manual_seed(8))
    y = torch.randint(CLASSES, (n,), generator=g).clamp(max=CLASSES - 1)
    y[: n // 3] = 0
    return torch.randn(n, D, generator=g) @ mix + 2 * centres[y], y


def _taught(X: torch.Tensor, y: torch.Tensor, shrinkage: float | None = 1e-4) -> SLDA:
    learner = SLDA(small_network("linear"), shrinkage=shrinkage)
    for z, label in zip(X, y.tolist(), strict=True):
        learner.learn_one(z, label)
    return learner


def test_equals_the_batch_solution() -> None:
    X, y = _data()
    learner = _taught(X, y)
    outputs = torch.tensor([learner.labels.index(int(label)) for label in y])
    means, covariance = within_class(X, outputs, CLASSES)
    assert torch.allclose(learner.moments.means[:, 0].double(), means, atol=1e-4)
    assert torch.allclose(
        learner.moments.scatter[0].double() / len(y), covariance, rtol=1e-4, atol=1e-4
    )
    by_hand = np.stack([np.cov(X[outputs == k].T.numpy(), bias=True) for k in range(CLASSES)])
    share = np.bincount(outputs) / len(y)
    assert np.allclose(covariance, np.tensordot(share, by_hand, 1), atol=1e-4)
    weight, bias = lda(means, covariance, 1e-4)
    test = torch.randn(200, D)
    assert torch.allclose(learner.logits(test), (test @ weight.t() + bias).float(), atol=1e-3)


def test_order_of_the_stream_does_not_matter() -> None:
    X, y = _data()
    sorted_by_class = y.argsort(stable=True)
    a, b = _taught(X, y), _taught(X[sorted_by_class], y[sorted_by_class])
    test = 2 * torch.randn(300, D)
    assert a.predict_many(test) == b.predict_many(test)


def test_agrees_with_scikit_learn() -> None:
    analysis = pytest.importorskip("sklearn.discriminant_analysis")
    covariance = pytest.importorskip("sklearn.covariance")

    class Shrunk(covariance.EmpiricalCovariance):
        def fit(self, X, y=None):
            super().fit(X)
            self.covariance_ = 0.99 * self.covariance_ + 0.01 * np.eye(X.shape[1])
            return self

    X, y = _data()
    reference = analysis.LinearDiscriminantAnalysis(
        solver="lsqr", covariance_estimator=Shrunk()
    ).fit(X.double().numpy(), y.numpy())
    learner = _taught(X, y, shrinkage=0.01)
    test = 2 * torch.randn(300, D, generator=torch.Generator().manual_seed(3))
    # scikit-learn adds the logarithm of class frequencies, which streaming LDA leaves out
    theirs = reference.decision_function(test.double().numpy()) - np.log(reference.priors_)
    mine = learner.logits(test)[:, [learner.labels.index(k) for k in range(CLASSES)]]
    gap = mine.double().numpy() - theirs
    assert np.allclose(gap - gap.mean(1, keepdims=True), 0, atol=1e-3)


def test_answers_are_fresh_after_every_sample_and_after_loading() -> None:
    X, y = _data(60)
    learner, other = _taught(X[:40], y[:40]), _taught(X[:40] + 1, y[:40])
    test = torch.randn(20, D)
    first = learner.logits(test)
    assert torch.equal(first, learner.logits(test))
    learner.learn_one(X[50], int(y[50]))
    assert not torch.equal(first, learner.logits(test))
    expected = other.logits(test)
    learner.load_state({k: v.clone() for k, v in other.state().items()})
    assert torch.equal(learner.logits(test), expected)


def test_solves_once_for_many_answers(monkeypatch) -> None:
    X, y = _data(60)
    learner = _taught(X, y)
    calls = []

    def counted(*args):
        calls.append(1)
        return lda(*args)

    monkeypatch.setattr("verse.kernels.moments.lda", counted)
    for _ in range(5):
        learner.predict_many(X)
    assert len(calls) == 1


def test_first_samples_and_singular_covariance() -> None:
    """With fewer samples than dimensions, and with one, answers are finite and right."""
    learner = SLDA(small_network("linear"))
    eye = 3 * torch.eye(D)
    for k in range(3):
        learner.learn_one(eye[k], k)
        assert bool(torch.isfinite(learner.logits(eye)).all())
    assert learner.predict_many(eye[:3]) == [0, 1, 2]


def test_merging_classes_is_as_if_they_had_been_one() -> None:
    X, y = _data()
    merged = _taught(X, y)
    merged.merge(3, into=1)
    one = _taught(X, torch.where(y == 3, 1, y))
    test = 2 * torch.randn(300, D)
    assert torch.allclose(merged.moments.scatter, one.moments.scatter, rtol=1e-3, atol=1e-1)
    assert merged.predict_many(test) == one.predict_many(test)


def test_its_statistics_are_its_memory() -> None:
    learner = _taught(*_data())
    assert learner.memory_bytes == 4 * (D * D + (CLASSES + PENDING) * D) + 8 * CLASSES


def test_on_a_grid_it_is_the_statistics_of_verse_joint() -> None:
    g = torch.Generator().manual_seed(0)
    y = (torch.arange(90) % 3).tolist()
    X = torch.randn(3, 5, 2, 2, generator=g)[y] + torch.randn(90, 5, 2, 2, generator=g)
    F = Plastic(torch.nn.Flatten(), Head(20), z_shape=(5, 2, 2))
    learner = SLDA(F, features="grid", shrinkage=0.1)
    for z, label in zip(X, y, strict=True):
        learner.learn_one(z, label)
    E = GridFeatures((5, 2, 2), s=0.5)(X)
    means, covariance = within_class(E, torch.tensor(y), 3)
    scale = covariance.diagonal().mean()
    weight, bias = lda(means, covariance / scale, 0.1)
    expected = (E.double() @ weight.double().t() + bias) / scale
    assert torch.allclose(learner.logits(X).double(), expected, rtol=1e-3, atol=1e-3)
    assert torch.allclose(learner.network()(X), learner.logits(X), rtol=1e-3, atol=1e-3)


def test_without_a_share_it_shrinks_as_few_samples_need_it() -> None:
    X, y = _data(40)
    few = oas(within_class(X, y, CLASSES)[1], 40)
    X, y = _data(4000)
    many = oas(within_class(X, y, CLASSES)[1], 4000)
    assert 0 < many < few / 10 < 0.1
    learner = _taught(X[:40], y[:40], shrinkage=None)
    assert torch.isfinite(learner.logits(X)).all()
