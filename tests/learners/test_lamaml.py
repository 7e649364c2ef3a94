"""Look-ahead MAML against a computation by hand, written without any of the package's code."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from verse.checks import small_network, small_stream
from verse.learners import LaMAML, build
from verse.memory import Reservoir
from verse.network import Head, Plastic


def gradient(W, b, Z, y):
    """d/d(W, b) of the mean cross-entropy of a linear model, as one array [classes, d + 1]."""
    s = Z @ W.T + b
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(y)), y] -= 1
    p /= len(y)
    return np.concatenate((p.T @ Z, p.sum(0)[:, None]), 1)


def table(learner: LaMAML, vector) -> np.ndarray:
    n = len(learner.labels)
    views = vector.layout.views(vector.data)
    weight, bias = views["head.weight"][:n], views["head.bias"][:n, None]
    return torch.cat((weight, bias), 1).double().numpy().copy()


def clipped(x: np.ndarray, bound: float) -> np.ndarray:
    return x * min(1.0, bound / np.linalg.norm(x))


def linear(**settings) -> LaMAML:
    F = Plastic(nn.Identity(), Head(3), z_shape=(3,))
    learner = LaMAML(F, Reservoir(10), **settings)
    random = np.random.default_rng(0)
    for t in range(8):
        learner.learn_one(torch.tensor(random.normal(size=3), dtype=torch.float32), t % 3)
    return learner


def test_one_step_by_hand() -> None:
    for clip in (2.0, 0.05):
        learner = linear(lr=0.1, eta=0.3, C=4, clip=clip)
        z, y = np.array([0.5, -1.0, 2.0]), 1
        theta, rates = table(learner, learner.theta), table(learner, learner.rates)
        assert rates.std() > 0  # they have moved already
        mark = learner.memory.random.mark()
        old = learner.memory.sample(4)
        learner.memory.random.undo(mark)

        g = np.clip(gradient(theta[:, :3], theta[:, 3], z[None], [y]), -clip, clip)
        ahead = theta - rates * g
        Z, labels = np.concatenate((z[None], old.z.numpy())), [y, *old.y.tolist()]
        meta = gradient(ahead[:, :3], ahead[:, 3], Z, labels)
        new_rates = rates - 0.3 * clipped(-meta * g, clip)
        expected = theta - np.maximum(new_rates, 0) * clipped(meta, clip)

        learner.learn_one(torch.tensor(z, dtype=torch.float32), y)
        np.testing.assert_allclose(table(learner, learner.rates), new_rates, rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(table(learner, learner.theta), expected, rtol=1e-4, atol=1e-6)


def test_the_slope_of_the_rates_is_the_derivative_of_the_meta_loss() -> None:
    """First order in θ, but exact in the rates: one step ahead is linear in them."""
    learner = linear(lr=0.1, eta=1.0, C=4, clip=None)
    z, y = torch.tensor([0.5, -1.0, 2.0]), 1
    theta = torch.tensor(table(learner, learner.theta))
    rates = torch.tensor(table(learner, learner.rates), requires_grad=True)
    mark = learner.memory.random.mark()
    old = learner.memory.sample(4)
    learner.memory.random.undo(mark)
    g = torch.tensor(gradient(theta[:, :3].numpy(), theta[:, 3].numpy(), z[None].numpy(), [y]))
    ahead = theta - rates * g
    Z = torch.cat((z[None], old.z)).double()
    loss = nn.functional.cross_entropy(
        Z @ ahead[:, :3].T + ahead[:, 3], torch.cat((torch.tensor([y]), old.y))
    )
    (slope,) = torch.autograd.grad(loss, rates)
    before = table(learner, learner.rates)
    learner.learn_one(z, y)
    np.testing.assert_allclose(before - table(learner, learner.rates), slope, rtol=1e-4, atol=1e-6)


def test_a_negative_rate_stops_its_weight_but_may_recover() -> None:
    learner = linear(lr=0.1, eta=0.3)
    learner.rates.data.fill_(-10.0)
    before, rates = learner.theta.data.clone(), learner.rates.data.clone()
    learner.learn_one(torch.tensor([0.5, -1.0, 2.0]), 1)
    assert torch.equal(learner.theta.data, before)
    assert not torch.equal(learner.rates.data, rates)


def test_new_rows_start_with_the_start_rate_also_after_growth() -> None:
    learner = LaMAML(small_network(), Reservoir(30), lr=0.02, eta=0.0)
    for z, y in small_stream(learner.F, classes=20, each=1):
        learner.learn_one(z, y)
        rates, n = learner.rates.layout.views(learner.rates.data), len(learner.labels)
        assert torch.all(rates["head.weight"][:n] == 0.02)
        assert not rates["head.weight"][n:].any()
        assert torch.all(rates["body.conv.weight"] == 0.02)


def test_c_maml_keeps_the_rates() -> None:
    learner = build("c-maml", small_network(), Reservoir(30), lr=0.02)
    assert isinstance(learner, LaMAML) and learner.eta == 0
    for z, y in small_stream(learner.F):
        learner.learn_one(z, y)
    rates = learner.rates.layout.views(learner.rates.data)
    assert torch.all(rates["head.weight"][:3] == 0.02)
    assert torch.all(rates["body.conv.weight"] == 0.02)
