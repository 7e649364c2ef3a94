"""MAS: importance without labels, by hand and by autograd."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.learners.reference import Reference, flat_of, mixed
from verse.checks import small_network, small_stream
from verse.learners import MAS
from verse.network import Head, Plastic


def test_importance_of_a_linear_model_by_hand() -> None:
    """∂‖Wz + b‖²/∂W = 2 s zᵀ: no label is in it."""
    learner = MAS(Plastic(nn.Identity(), Head(2), z_shape=(2,)), trigger="every:1", lr=1e-9)
    z = torch.tensor([3.0, -4.0])
    for y in (0, 1):
        learner.learn_one(torch.zeros(2), y)
    learner.learn_one(z, 1)
    before = learner.importance.data.clone()
    s = learner.theta.scores(z[None])[0]
    learner.learn_one(torch.zeros(2), 0)  # the trigger fires before this sample
    views = learner.importance.layout.views(learner.importance.data - before)
    torch.testing.assert_close(views["head.weight"][:2], (2 * torch.outer(s, z)).abs())
    torch.testing.assert_close(views["head.bias"][:2], (2 * s).abs())


def test_importance_does_not_depend_on_labels() -> None:
    F = small_network()
    Z = torch.randn(8, *F.z_shape, generator=torch.Generator().manual_seed(0))
    sums = []
    for flip in (0, 1):
        learner = MAS(F, lr=1e-12)
        for y in (0, 1):
            learner.learn_one(Z[0], y)
        for t, z in enumerate(Z):
            learner.learn_one(z, (t + flip) % 2)
        sums.append(learner.sensitivity.data.clone())
    torch.testing.assert_close(sums[0], sums[1])


@pytest.mark.parametrize("penalty", ["implicit", "explicit"])
def test_a_run_by_autograd(penalty: str) -> None:
    lam, every, lr = 0.05, 11, 0.01
    F = small_network()
    ours = MAS(F, lam=lam, penalty=penalty, trigger=f"every:{every}", lr=lr, clip=None)
    ref = Reference(F, classes=3)
    omega = torch.zeros_like(ref.flat)
    sensitivity, anchor = omega.clone(), omega.clone()
    for t, (z, label) in enumerate(mixed(small_stream(F))):
        y = ref.welcome(label)
        if t and t % every == 0:
            omega = omega + sensitivity / every
            sensitivity, anchor = torch.zeros_like(omega), ref.flat
        measured = ref.gradient(ref.scores(z[None]).square().sum()).abs()
        g = ref.gradient(cross_entropy(ref.scores(z[None]), torch.tensor([y])))
        ref.spring_step(g, lr, lam, omega, anchor, penalty)
        sensitivity = sensitivity + measured
        ours.learn_one(z, label)
    for vector, expected in (
        (ours.importance, omega),
        (ours.sensitivity, sensitivity),
        (ours.anchor, anchor),
        (ours.theta, ref.flat),
    ):
        torch.testing.assert_close(flat_of(vector, 3), expected, rtol=1e-3, atol=1e-4)
