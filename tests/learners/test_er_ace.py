"""ER-ACE: the same steps by plain automatic differentiation."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from tests.learners.reference import Reference, flat_of, mixed
from verse.checks import small_network, small_stream
from verse.learners import ERACE
from verse.memory import Reservoir

LR, RECENT = 0.2, 3


def test_equals_its_formula() -> None:
    F = small_network()
    stream = mixed(small_stream(F))
    learner = ERACE(
        F, Reservoir(50), lr=LR, recent=RECENT, C=50, clip=None
    )  # draws are all there is
    reference, seen = Reference(F, 3), []
    for z, y in stream:
        learner.learn_one(z, y)
        seen.append((z, reference.welcome(y)))
        among = sorted({output for _, output in seen[-RECENT:]})
        own = torch.tensor([among.index(seen[-1][1])])
        value = cross_entropy(reference.scores(z.unsqueeze(0))[:, among], own)
        if len(seen) > 1:
            old, labels = zip(*seen[:-1], strict=True)
            value = value + cross_entropy(reference.scores(torch.stack(old)), torch.tensor(labels))
        reference.move(-LR * reference.gradient(value))
    assert torch.allclose(flat_of(learner.theta, 3), reference.flat, atol=1e-4)


def test_while_one_class_is_shown_a_new_sample_moves_no_other() -> None:
    F = small_network("linear")
    learner = ERACE(F, Reservoir(50), lr=LR, recent=2, C=0)
    learner.learn_one(torch.ones(6), 0)
    for _ in range(3):
        learner.learn_one(-torch.ones(6), 1)
    before = learner.theta.data.clone()
    learner.learn_one(-torch.ones(6), 1)
    assert torch.equal(before, learner.theta.data)
    learner.learn_one(torch.ones(6), 0)  # now both classes are among the latest
    assert not torch.equal(before, learner.theta.data)


def test_latest_classes_follow_the_outputs() -> None:
    learner = ERACE(small_network("linear"), Reservoir(50), recent=4)
    for y in (5, 6, 7, 6):
        learner.learn_one(torch.full((6,), float(y)), y)
    assert learner.latest == [0, 1, 2, 1]
    learner.merge(6, into=7)
    assert learner.latest == [0, 1, 1, 1]
    learner.forget(5)
    assert learner.latest == [0, 0, 0]
