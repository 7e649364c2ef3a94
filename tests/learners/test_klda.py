"""KLDA equals discriminant analysis on the whole batch of its random Fourier features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from verse.checks import small_network, small_stream
from verse.kernels.moments import PENDING
from verse.learners import KLDA
from verse.learners.shared.random_features import fourier_features

M, GAMMA = 40, 0.7


def taught(seed: int = 3, **settings) -> tuple[KLDA, torch.Tensor, np.ndarray]:
    F = small_network()
    stream = small_stream(F, classes=4, each=40)
    g = torch.Generator().manual_seed(1)  # more spread than the small stream has
    stream = [(z + torch.randn(z.shape, generator=g), y) for z, y in stream]
    stream = [stream[7 * t % len(stream)] for t in range(len(stream))]
    learner = KLDA(F, M=M, gamma=GAMMA, seed=seed, **settings)
    for z, y in stream:
        learner.learn_one(z, y)
    return learner, torch.stack([z for z, _ in stream]), np.array([y for _, y in stream])


def expanded(learner: KLDA, Z: torch.Tensor) -> np.ndarray:
    """The random features by NumPy, from the numbers that the learner drew."""
    E = normalize(learner.F.body(Z).detach()).double().numpy()
    drawn = learner.expand[1]
    angles = E @ drawn.weight.double().numpy().T + drawn.bias.double().numpy()
    return np.sqrt(2 / M) * np.cos(angles)


def within(H: np.ndarray, y: np.ndarray, labels: list[int]) -> tuple[np.ndarray, np.ndarray]:
    means = np.stack([H[y == label].mean(0) for label in labels])
    gaps = H - means[[labels.index(label) for label in y]]
    return means, gaps


@pytest.mark.parametrize("shrinkage", [0.05, None])
def test_scores_equal_the_batch_solution(shrinkage: float | None) -> None:
    learner, Z, y = taught(shrinkage=shrinkage)
    H = expanded(learner, Z)
    means, gaps = within(H, y, learner.labels)
    S, n = gaps.T @ gaps / len(y), len(y)
    if shrinkage is None:  # the formula of Chen et al., equation 23
        squares, trace = (S**2).sum(), np.trace(S) ** 2
        shrinkage = ((1 - 2 / M) * squares + trace) / ((n + 1 - 2 / M) * (squares - trace / M))
    A = np.linalg.inv((1 - shrinkage) * S + shrinkage * np.trace(S) / M * np.eye(M))
    expected = H @ A @ means.T - 0.5 * np.einsum("ki,ij,kj->k", means, A, means)
    scores = learner.logits(learner.F.stored(Z))
    assert np.allclose(scores.double(), expected, rtol=1e-3, atol=1e-2)
    assert torch.allclose(learner.network()(Z), scores, atol=1e-3)


def test_agrees_with_scikit_learn() -> None:
    """Its discriminant analysis of the same random features has the same scores."""
    analysis = pytest.importorskip("sklearn.discriminant_analysis")
    covariance = pytest.importorskip("sklearn.covariance")
    learner, Z, y = taught(shrinkage=0.1)
    H = expanded(learner, Z)
    reference = analysis.LinearDiscriminantAnalysis(
        "lsqr", covariance_estimator=covariance.ShrunkCovariance(shrinkage=0.1)
    ).fit(H, y)
    # it adds the logarithm of class frequencies, which KLDA leaves out
    theirs = reference.decision_function(H) - np.log(reference.priors_)
    columns = [learner.labels.index(label) for label in reference.classes_]
    gap = learner.logits(learner.F.stored(Z))[:, columns].double().numpy() - theirs
    assert np.allclose(gap - gap.mean(1, keepdims=True), 0, atol=1e-2)


def test_inner_products_approach_the_kernel() -> None:
    g = torch.Generator().manual_seed(0)
    E = normalize(torch.randn(30, 6, generator=g))
    H = fourier_features(6, 20_000, GAMMA, seed=1)(E)
    kernel = torch.exp(-GAMMA * torch.cdist(E, E).square())
    assert torch.allclose(H @ H.t(), kernel, atol=0.05)


def test_tells_apart_what_no_line_does() -> None:
    """Each of two classes lies on opposite corners."""
    learner = KLDA(small_network("linear"), M=200, gamma=1.0)
    corners = torch.tensor([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    g = torch.Generator().manual_seed(0)
    z = torch.zeros(200, 6)
    z[:, :2] = corners[torch.arange(200) % 4] + 0.2 * torch.randn(200, 2, generator=g)
    y = [(t % 4) // 2 for t in range(200)]
    for row, label in zip(z, y, strict=True):
        learner.learn_one(row, label)
    right = sum(a == b for a, b in zip(learner.predict_many(z), y, strict=True))
    assert right >= 196


def test_random_features_follow_from_the_seed_and_are_not_saved() -> None:
    learner, Z, _ = taught()
    again = KLDA(learner.F, M=M, gamma=GAMMA, seed=3)
    again.load_state({name: tensor.clone() for name, tensor in learner.state().items()})
    stored = learner.F.stored(Z)
    assert torch.equal(again.logits(stored), learner.logits(stored))
    assert not any("expand" in name for name in learner.state())
    other = KLDA(learner.F, M=M, gamma=GAMMA, seed=4)
    assert not torch.equal(learner.expand[1].weight, other.expand[1].weight)


def test_memory_does_not_grow_with_the_stream() -> None:
    learner, Z, y = taught()
    before = learner.memory_bytes
    for z, label in zip(Z, y.tolist(), strict=True):
        learner.learn_one(z, label)
    assert learner.memory_bytes == before == 4 * (M * M + (4 + PENDING) * M) + 8 * 4
