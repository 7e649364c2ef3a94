"""MIR: the same steps by plain automatic differentiation."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from tests.learners.reference import Reference, flat_of, mixed
from verse.checks import small_network, small_stream
from verse.learners import MIR
from verse.memory import Reservoir

LR, C = 0.2, 4


def test_equals_its_formula() -> None:
    F = small_network()
    stream = mixed(small_stream(F))
    # as many candidates as there are samples: nothing is left to chance
    learner = MIR(F, Reservoir(50), lr=LR, candidates=50, C=C, clip=None)
    reference, seen = Reference(F, 3), []
    for z, y in stream:
        learner.learn_one(z, y)
        new = torch.tensor([reference.welcome(y)])
        chosen = seen
        if len(seen) > C:
            old, labels = torch.stack([z for z, _ in seen]), torch.tensor([k for _, k in seen])
            before = cross_entropy(reference.scores(old), labels, reduction="none").detach()
            step = -LR * reference.gradient(cross_entropy(reference.scores(z[None]), new))
            reference.move(step)
            after = cross_entropy(reference.scores(old), labels, reduction="none").detach()
            reference.move(-step)
            chosen = [seen[i] for i in (after - before).topk(C).indices.tolist()]
        Z = torch.stack([z, *(z for z, _ in chosen)])
        labels = torch.tensor([int(new), *(k for _, k in chosen)])
        reference.move(-LR * reference.gradient(cross_entropy(reference.scores(Z), labels)))
        seen.append((z, int(new)))
    assert torch.allclose(flat_of(learner.theta, 3), reference.flat, atol=1e-4)


def test_replays_what_the_new_sample_spoils() -> None:
    """A sample of a new class that looks like an old one: that class is replayed, no other."""
    learner = MIR(small_network("linear"), Reservoir(50), lr=0.5, candidates=50, C=4)
    eye = torch.eye(6)
    for t in range(20):
        learner.learn_one(eye[t % 2], t % 2)
    drawn = []
    gradient = learner.theta.gradient

    def watch(Z, loss, **options):
        drawn.append(Z.clone())
        return gradient(Z, loss, **options)

    learner.theta.gradient = watch
    learner.learn_one(eye[0], 2)
    assert torch.equal(drawn[-1], eye[[0] * 5])
