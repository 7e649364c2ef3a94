"""RanPAC equals ridge regression on the whole batch of its random features."""

from __future__ import annotations

import torch
from torch.nn.functional import normalize, one_hot

from verse.checks import small_network, small_stream
from verse.kernels.randomness import Random
from verse.learners import RanPAC

M = 50


def taught(seed: int = 3, **settings) -> tuple[RanPAC, torch.Tensor, torch.Tensor]:
    F = small_network()
    stream = small_stream(F, classes=4, each=40)
    learner = RanPAC(F, M=M, seed=seed, **settings)
    for z, y in stream:
        learner.learn_one(z, y)
    return learner, torch.stack([z for z, _ in stream]), torch.tensor([y for _, y in stream])


def test_scores_equal_the_batch_solution() -> None:
    learner, Z, y = taught(ridge=0.2)
    R = Random(3, 3).normal_tensor((M, 6)).double()
    E = normalize(learner.F.body(Z).detach()).double()
    H = (2 / M) ** 0.5 * (E @ R.t()).clamp(min=0)
    W = torch.linalg.solve(
        H.t() @ H + 0.2 * torch.eye(M).double(), H.t() @ one_hot(y - 10).double()
    )
    scores = learner.logits(learner.F.stored(Z))
    assert torch.allclose(scores.double(), H @ W, atol=1e-4)
    assert torch.allclose(learner.network()(Z), scores, atol=1e-5)


def test_solves_what_is_linear_only_in_its_random_features() -> None:
    """Two classes on opposite sides of both of two others: no line tells them apart."""
    F = small_network("linear")
    learner = RanPAC(F, M=200, ridge=0.01)
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
    again = RanPAC(learner.F, M=M, seed=3)
    again.load_state({name: tensor.clone() for name, tensor in learner.state().items()})
    stored = learner.F.stored(Z)
    assert torch.equal(again.logits(stored), learner.logits(stored))
    assert not any("expand" in name for name in learner.state())
    other = RanPAC(learner.F, M=M, seed=4)
    assert not torch.equal(learner.expand[1].weight, other.expand[1].weight)


def test_solves_once_for_many_answers(monkeypatch) -> None:
    learner, Z, _ = taught()
    calls = []
    solve = torch.linalg.cholesky

    def count(A):
        calls.append(1)
        return solve(A)

    monkeypatch.setattr(torch.linalg, "cholesky", count)
    for _ in range(3):
        learner.predict_many(Z)
    assert len(calls) == 1
