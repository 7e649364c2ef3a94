"""One VERSE step against a computation by hand, written without any of the package's code."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from verse.learners import VERSE, VERSENewSample
from verse.memory import Reservoir
from verse.network import Head, Plastic
from verse.types import BadSetting, Refused


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def cross_entropy_gradient(W, b, Z, y):
    """d/d(W, b) of the mean cross-entropy of a linear model."""
    p = softmax(Z @ W.T + b)
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    return p.T @ Z, p.sum(0)


def mse_gradient(W, b, Z, H):
    gap = 2 * (Z @ W.T + b - H) / H.size
    return gap.T @ Z, gap.sum(0)


def weights(learner, net):
    state = net.state()
    return (
        state["head.weight"].double().numpy().copy(),
        state["head.bias"].double().numpy().copy(),
    )


def linear(d: int = 5) -> Plastic:
    return Plastic(nn.Identity(), Head(d), z_shape=(d,))


@pytest.mark.parametrize("form", ["general", "linear"])
@pytest.mark.parametrize("method", [VERSE, VERSENewSample])
def test_one_step_by_hand(method: type[VERSE], form: str) -> None:
    """θ_v, θ and Φ to 1e-6, several steps, three classes, memory smaller than the stream."""
    alpha, beta, lam, gamma, C, capacity = 0.05, 0.1, 0.3, 0.9, 4, 6
    rng = np.random.default_rng(0)
    Z, Y = rng.normal(size=(12, 5)), [0, 1, 0, 2, 1, 1, 2, 0, 1, 2, 2, 0]
    learner = method(
        linear(),
        Reservoir(capacity),
        alpha=alpha,
        beta=beta,
        lam=lam,
        gamma=gamma,
        r=1.0,
        C=C,
        clip=None,
    )
    if form == "general":
        learner.linear, learner.virtual = None, learner.theta.copy()

    for z, label in zip(Z, Y, strict=True):
        # what memory holds and what it will draw, replayed from a copy of its state
        before = learner.memory.state()
        held_z, held_y = before["field.z"].double().numpy().copy(), before["field.y"].numpy().copy()
        dice = np.random.Generator(np.random.PCG64(0))
        dice.bit_generator.state = learner.memory.random.mark()

        def draw(n, dice=dice):
            return dice.choice(n, size=min(C, n), replace=False, shuffle=False)

        n = len(held_y)
        d_v = draw(n)
        d_l, d_m = (draw(n), draw(n)) if n else (None, None)

        # the state before, with the new class's row as the learner will make it
        W, b = weights(learner, learner.theta)
        W_phi, b_phi = weights(learner, learner.phi)
        if label not in learner.labels:
            coin = np.random.Generator(np.random.PCG64(0))
            coin.bit_generator.state = learner.random.mark()
            row = coin.uniform(-(5**-0.5), 5**-0.5, 6).astype(np.float32).astype(np.float64)
            W, W_phi = np.vstack((W, row[:5])), np.vstack((W_phi, row[:5]))
            b, b_phi = np.append(b, row[5]), np.append(b_phi, row[5])
        known = [*learner.labels, *([label] if label not in learner.labels else [])]
        y = known.index(label)

        # Algorithm 1
        gW, gb = cross_entropy_gradient(
            W, b, np.vstack((z, held_z[d_v])), np.append(y, held_y[d_v])
        )
        W_v, b_v = W - alpha * gW, b - alpha * gb
        z_l, z_m, y_m = (
            (held_z[d_l], held_z[d_m], held_y[d_m]) if n else (z[None], z[None], np.array([y]))
        )
        if method is VERSENewSample and n:
            z_m, y_m = np.vstack((z, z_m)), np.append(y, y_m)
        H = z_l @ W_phi.T + b_phi
        cW, cb = cross_entropy_gradient(W_v, b_v, z_m, y_m)
        mW, mb = mse_gradient(W_v, b_v, z_l, H)
        W_new, b_new = W - beta * (cW + lam * mW), b - beta * (cb + lam * mb)
        W_phi, b_phi = gamma * W_phi + (1 - gamma) * W_new, gamma * b_phi + (1 - gamma) * b_new

        learner.learn_one(torch.from_numpy(z).float(), label)

        pairs = [(learner.theta, W_new, b_new), (learner.phi, W_phi, b_phi)]
        if form == "general":  # the linear form never writes θ_v down
            pairs.append((learner.virtual, W_v, b_v))
        for net, W_right, b_right in pairs:
            W_found, b_found = weights(learner, net)
            np.testing.assert_allclose(W_found, W_right, atol=1e-6)
            np.testing.assert_allclose(b_found, b_right, atol=1e-6)


def test_acceptance_rate() -> None:
    """Φ moves in about r of the steps, and never with r = 0."""
    moved = {0.0: 0, 0.3: 0, 1.0: 0}
    for r in moved:
        learner = VERSE(linear(), Reservoir(10), r=r, gamma=0.5)
        learner.learn_one(torch.ones(5), 0)
        for t in range(200):
            before = learner.phi.data.clone()
            learner.learn_one(torch.randn(5, generator=torch.Generator().manual_seed(t)), t % 2)
            same_shape = before.shape == learner.phi.data.shape
            grew = t == 1
            moved[r] += not grew and not (same_shape and torch.equal(before, learner.phi.data))
    assert moved[0.0] == 0
    assert moved[1.0] >= 198
    assert 40 <= moved[0.3] <= 80


def test_virtual_step_leaves_theta(monkeypatch) -> None:
    """A failure between the virtual and the global step finds θ untouched."""
    learner = VERSE(linear(), Reservoir(10))
    for t in range(5):
        learner.learn_one(torch.ones(5) * t, t % 2)
    theta = learner.theta.data.clone()
    monkeypatch.setattr(learner.phi, "score_rows", lambda E: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        learner.learn_one(torch.ones(5), 0)
    assert torch.equal(theta, learner.theta.data)


def test_non_finite_loss_is_refused() -> None:
    """A finite feature whose loss overflows is refused, and nothing changes."""
    learner = VERSE(linear(), Reservoir(10))
    for t in range(5):
        learner.learn_one(torch.ones(5) * t, t % 2)
    learner.theta.data.mul_(1e30)
    before = {k: v.clone() for k, v in learner.state().items()}
    with pytest.raises(Refused, match="not finite"):
        learner.learn_one(torch.full((5,), 3e4), 7)
    after = learner.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[k], after[k]) for k in before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", -1),
        ("beta", 0),
        ("lam", -0.1),
        ("gamma", 1.1),
        ("r", 2),
        ("C", 0),
        ("clip", 0),
        ("predict_with", "both"),
        ("seed", -1),
    ],
)
def test_settings_are_validated(name: str, value) -> None:
    with pytest.raises(BadSetting, match=name):
        VERSE(linear(), Reservoir(5), **{name: value})


def test_without_a_virtual_step_its_gradient_is_not_missed() -> None:
    """α = 0 saves the gradient; an α too small to move θ at all does not, and ends the same."""
    ends = []
    for alpha in (0.0, 1e-30):
        torch.manual_seed(0)
        body = nn.Sequential(nn.Linear(5, 6), nn.ReLU())
        F = Plastic(body, Head(6), z_shape=(5,))
        learner = VERSE(F, Reservoir(10), alpha=alpha, beta=0.1, r=0.5)
        for t in range(30):
            learner.learn_one(torch.randn(5, generator=torch.Generator().manual_seed(t)), t % 3)
        ends.append((learner.theta.data, learner.phi.data, learner.losses))
    (theta, phi, losses), (other_theta, other_phi, other_losses) = ends
    assert torch.equal(theta, other_theta) and torch.equal(phi, other_phi)
    assert losses == pytest.approx(other_losses)
