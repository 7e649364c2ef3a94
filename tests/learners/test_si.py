"""SI: the path integral against what the loss really lost, and a run by autograd."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.learners.reference import Reference, flat_of, mixed
from verse.checks import small_network, small_stream
from verse.learners import SI
from verse.network import Head, Plastic


def test_the_path_integral_is_the_loss_that_was_lost() -> None:
    """Σ ω = −∫ g dθ: for small steps on one sample, the drop of its loss."""
    F = Plastic(nn.Identity(), Head(3), z_shape=(3,))
    learner = SI(F, lr=1e-3, clip=None, trigger="event")
    z, target = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([1])
    for y in range(3):
        learner.learn_one(torch.zeros(3), y)
    start = learner.path.data.sum()
    before = cross_entropy(learner.theta.scores(z[None]), target)
    for _ in range(300):
        learner.learn_one(z, 1)
    lost = before - cross_entropy(learner.theta.scores(z[None]), target)
    assert float(lost) > 0.3
    torch.testing.assert_close(learner.path.data.sum() - start, lost, rtol=0.01, atol=0)


def test_on_a_quadratic_every_weight_is_credited_its_share(monkeypatch) -> None:
    """L = ½ Σ_k s_k² at z = (1, 0): W_k0 and b_k each earn half of ½ (s_k² before − after)."""
    quadratic = lambda y: lambda s: (s.square().sum() / 2, s)  # noqa: E731
    monkeypatch.setattr("verse.learners.si.cross_entropy", quadratic)
    F = Plastic(nn.Identity(), Head(2), z_shape=(2,))
    learner = SI(F, lr=1e-3, clip=None, trigger="event")
    for y in (0, 1):
        learner.learn_one(torch.zeros(2), y)
    learner.path.data.zero_()
    z = torch.tensor([1.0, 0.0])
    before = learner.theta.scores(z[None])[0]
    for _ in range(400):
        learner.learn_one(z, 0)
    share = (before.square() - learner.theta.scores(z[None])[0].square()) / 4
    path = learner.path.layout.views(learner.path.data)
    torch.testing.assert_close(path["head.weight"][:2, 0], share, rtol=5e-3, atol=0)
    torch.testing.assert_close(path["head.bias"][:2], share, rtol=5e-3, atol=0)
    assert torch.equal(path["head.weight"][:2, 1], torch.zeros(2))


@pytest.mark.parametrize("penalty", ["implicit", "explicit"])
def test_a_run_by_autograd(penalty: str) -> None:
    lam, xi, every, lr = 0.3, 0.01, 11, 0.02
    F = small_network()
    ours = SI(F, lam=lam, xi=xi, penalty=penalty, trigger=f"every:{every}", lr=lr, clip=0.8)
    ref = Reference(F, classes=3)
    omega = torch.zeros_like(ref.flat)
    path, anchor = omega.clone(), ref.flat
    for t, (z, label) in enumerate(mixed(small_stream(F))):
        known = ref.n
        y = ref.welcome(label)
        if ref.n > known:  # a new row starts its path where it was born
            born = ref.live(anchor, ref.n) & ~ref.live(anchor, known)
            anchor = torch.where(born, ref.flat, anchor)
        if t and t % every == 0:
            omega = torch.relu(omega + path / ((ref.flat - anchor) ** 2 + xi))
            path, anchor = torch.zeros_like(path), ref.flat
        g = ref.gradient(cross_entropy(ref.scores(z[None]), torch.tensor([y])))
        path = path - g * ref.spring_step(g, lr, lam, omega, anchor, penalty, clip=0.8)
        ours.learn_one(z, label)
    assert float(omega.max()) > 0
    for vector, expected in (
        (ours.importance, omega),
        (ours.path, path),
        (ours.anchor, anchor),
        (ours.theta, ref.flat),
    ):
        torch.testing.assert_close(flat_of(vector, 3), expected, rtol=1e-3, atol=1e-5)
