"""SCR: the same steps and answers by plain automatic differentiation, sample by sample."""

from __future__ import annotations

import torch
from torch.nn.functional import normalize

from tests.learners.reference import Reference, flat_of, mixed
from verse.checks import small_network, small_stream
from verse.kernels.contrast import supervised_contrast
from verse.learners import SCR
from verse.memory import Reservoir

LR, TAU, P = 0.05, 0.3, 4


def contrast_by_hand(phi: torch.Tensor, y: list[int]) -> torch.Tensor:
    """The loss by its formula: a loop over anchors and over pairs."""
    anchors = []
    for i in range(len(y)):
        others = [k for k in range(len(y)) if k != i]
        pairs = [k for k in others if y[k] == y[i]]
        if pairs:
            whole = torch.exp(phi[others] @ phi[i] / TAU).sum()
            logs = [torch.log(torch.exp(phi[i] @ phi[k] / TAU) / whole) for k in pairs]
            anchors.append(-torch.stack(logs).mean())
    return torch.stack(anchors).mean() if anchors else 0 * phi.sum()


def test_equals_its_formula() -> None:
    F = small_network()
    stream = mixed(small_stream(F))[:20]
    learner = SCR(F, Reservoir(50), lr=LR, temperature=TAU, p=P, C=50, clip=None)  # draws all
    projection = learner.projection.double().clone().requires_grad_()
    reference, seen = Reference(F, 3), []
    for z, y in stream:
        learner.learn_one(z, y)
        seen.append((z, reference.welcome(y)))
        Z = torch.stack([z for z, _ in seen]).double()
        phi = normalize(reference.body(Z) @ projection.t())
        value = contrast_by_hand(phi, [output for _, output in seen])
        (dP,) = torch.autograd.grad(value, projection, retain_graph=True)
        reference.move(-LR * reference.gradient(value))
        projection = (projection - LR * dP).detach().requires_grad_()
    assert torch.allclose(learner.projection.double(), projection, atol=1e-4)
    assert torch.allclose(flat_of(learner.theta, 3), reference.flat, atol=1e-4)

    means = []
    for output in range(3):
        own = torch.stack([z for z, o in seen if o == output]).double()
        means.append(normalize(normalize(reference.body(own) @ projection.t()).mean(0), dim=0))
    Z = torch.stack([z for z, _ in stream])
    phi = normalize(reference.body(Z.double()) @ projection.t())
    expected = -torch.cdist(phi, torch.stack(means)).square()
    scores = learner.logits(F.stored(Z))
    assert torch.allclose(scores.double(), expected, atol=1e-3)
    assert torch.allclose(learner.network()(Z), scores, atol=1e-4)


def test_a_batch_without_a_pair_teaches_nothing() -> None:
    e, P = torch.randn(3, 5), torch.randn(4, 5)
    value, de, dP = supervised_contrast(e, P, torch.tensor([0, 1, 2]), 0.1)
    assert float(value) == 0 and not de.any() and not dP.any()


def test_it_draws_classes_together() -> None:
    """Two classes that overlap along many values and differ along one."""
    g = torch.Generator().manual_seed(0)
    y = [t % 2 for t in range(400)]
    X = torch.randn(400, 6, generator=g)
    X[:, 0] = torch.tensor(y) * 2.0 - 1 + 0.3 * torch.randn(400, generator=g)
    learner = SCR(small_network("linear"), Reservoir(60), lr=0.1, p=6)
    start = normalize(X)
    for z, label in zip(X[:300], y[:300], strict=True):
        learner.learn_one(z, label)
    after = learner.project(X)

    def tightness(phi: torch.Tensor) -> float:
        likeness, same = phi @ phi.t(), torch.tensor(y).view(-1, 1) == torch.tensor(y)
        return float(likeness[same].mean() - likeness[~same].mean())

    assert tightness(after) > tightness(start) + 0.2
    right = sum(a == b for a, b in zip(learner.predict_many(X[300:]), y[300:], strict=True))
    assert right >= 95


def test_answers_follow_the_memory() -> None:
    """A class whose last sample left memory is still a class, and the least likely one."""
    learner = SCR(small_network("linear"), Reservoir(2), p=6)
    eye = torch.eye(6)
    for t in range(40):
        learner.learn_one(eye[t % 5], t % 5)
    held = set(learner.memory.all().y.tolist())
    scores = learner.logits(eye[:5])
    gone = [o for o in range(5) if o not in held]
    assert gone and bool((scores[:, gone] == -8).all())
    assert bool((scores[:, sorted(held)] >= -4.001).all())
