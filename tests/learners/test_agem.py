"""A-GEM: never against the reference, and untouched where there is no conflict."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from tests.learners.reference import Reference, flat_of, mixed
from verse.checks import small_network, small_stream
from verse.kernels.projection import turn_from
from verse.learners import AGEM
from verse.memory import Reservoir


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.floats(-5, 5), st.floats(-5, 5))
def test_the_result_never_points_against_the_reference(seed: int, a: float, b: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    g = torch.randn(40, generator=generator) * 10**a
    r = torch.randn(40, generator=generator) * 10**b
    turned = turn_from(g, r)
    assert float(turned @ r) >= -1e-5 * float(g.norm() * r.norm())
    if float(g @ r) >= 0:
        assert turned is g
    else:  # the nearest such vector: only the part along r is gone
        torch.testing.assert_close(turned, g - (g @ r) / (r @ r) * r)
        assert float(turned.norm()) <= float(g.norm()) * (1 + 1e-6)


def test_a_reference_without_gradient_changes_nothing() -> None:
    g = torch.randn(5)
    assert turn_from(g, torch.zeros(5)) is g


def test_a_run_by_autograd() -> None:
    """The memory keeps all and every draw is all of it, so that chance has no part."""
    F, lr, turned = small_network(), 0.05, 0
    ours = AGEM(F, Reservoir(100), C=100, lr=lr, clip=None)
    ref = Reference(F, classes=3)
    Z, Y = [], []
    for z, label in mixed(small_stream(F)):
        y = ref.welcome(label)
        g = ref.gradient(cross_entropy(ref.scores(z[None]), torch.tensor([y])))
        if Z:
            r = ref.gradient(cross_entropy(ref.scores(torch.stack(Z)), torch.tensor(Y)))
            if float(g @ r) < 0:
                turned += 1
                g = g - (g @ r) / (r @ r) * r
        ref.move(-lr * g)
        Z.append(z)
        Y.append(y)
        ours.learn_one(z, label)
    assert turned > 3
    torch.testing.assert_close(flat_of(ours.theta, 3), ref.flat, rtol=1e-3, atol=1e-4)


def test_one_step_does_not_raise_the_loss_on_memory() -> None:
    """To first order, with the whole memory as reference and a tiny step."""
    F = small_network()
    learner = AGEM(F, Reservoir(100), C=100, lr=1e-4, clip=None)
    stream = small_stream(F)
    for z, y in stream[:24]:
        learner.learn_one(z, y)
    for z, y in stream[24:]:
        old = learner.memory.all()
        before = cross_entropy(learner.theta.scores(old.z), old.y)
        learner.learn_one(z, y)
        if len(learner.labels) == int(old.y.max()) + 1:  # a new output changes the loss by itself
            after = cross_entropy(learner.theta.scores(old.z), old.y)
            assert float(after) <= float(before) + 1e-6
