"""Steps on a linear F by hand, against automatic differentiation in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as nn_F
from torch import Tensor, nn

from verse.learners import VERSE, TinyER, VERSENewSample
from verse.memory import ClassBalanced, Reservoir
from verse.network.linear import LinearStep
from verse.network.net import Net
from verse.network.plastic import Head, Plastic
from verse.types import Refused

D, K = 12, 4


@pytest.fixture(params=[3, 40], autouse=True)
def classes(request, monkeypatch) -> int:
    """Fewer classes than samples in a step, and more: norms then follow from other products."""
    monkeypatch.setattr(f"{__name__}.CLASSES", request.param)
    return request.param


CLASSES = 3


def network(shape: tuple[int, ...] = (3, 2, 2)) -> Plastic:
    return Plastic(nn.Flatten(1), Head(D), z_shape=shape)


def net(seed: int) -> Net:
    made = Net(network())
    made.grow_to(CLASSES)
    generator = torch.Generator().manual_seed(seed)
    for part in made.head:
        part.copy_(torch.randn(part.shape, generator=generator) * 0.3)
    return made


def doubles(of: Net) -> list[Tensor]:
    return [part.double().requires_grad_() for part in of.head]


def descended(theta: list[Tensor], at: list[Tensor], loss: Tensor, lr: float, clip: float | None):
    """θ − lr · the gradient of a loss ``at`` other weights, its norm bounded."""
    gradient = torch.autograd.grad(loss, at)
    norm = float(torch.cat([g.flatten() for g in gradient]).norm())
    scale = 1.0 if clip is None else min(1.0, clip / norm)
    return [
        (t - lr * scale * g).detach().requires_grad_() for t, g in zip(theta, gradient, strict=True)
    ]


def scores(theta: list[Tensor], E: Tensor) -> Tensor:
    return E.double() @ theta[0].t() + theta[1]


@pytest.mark.parametrize("clip", [None, 0.05, 1e6])
@pytest.mark.parametrize("shared", [False, True])
def test_look_ahead(clip: float | None, shared: bool) -> None:
    rng = np.random.default_rng(0)
    ours, phi = net(0), net(1)
    m = 3 * K + 1
    step = LinearStep(ours)
    E = torch.from_numpy(step.rows(m))
    E.copy_(torch.from_numpy(rng.normal(size=(m, D))))
    y = rng.integers(0, CLASSES, m)
    M = slice(K, 2 * K + shared)  # with the new sample, row 2K, or without
    how = {"alpha": 0.3, "beta": 0.7, "lam": 0.4, "clip": clip}

    theta = doubles(ours)
    loss_v = nn_F.cross_entropy(scores(theta, E[2 * K :]), torch.from_numpy(y[2 * K :]))
    ahead = descended(theta, theta, loss_v, how["alpha"], clip)
    loss = nn_F.cross_entropy(scores(ahead, E[M]), torch.from_numpy(y[M]))
    teacher = scores(doubles(phi), E[:K]).detach()
    loss = loss + how["lam"] * nn_F.mse_loss(scores(ahead, E[:K]), teacher)
    expected = descended(theta, ahead, loss, how["beta"], clip)

    found = step.look_ahead(K, y[M], y[2 * K :], phi, **how)
    np.testing.assert_allclose(found, (loss_v.item(), loss.item()), rtol=1e-5)
    for part, right in zip(ours.head, expected, strict=True):
        torch.testing.assert_close(part.double(), right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("clip", [None, 0.05])
def test_replay(clip: float | None) -> None:
    ours = net(0)
    step = LinearStep(ours)
    E = torch.from_numpy(step.rows(K))
    E.copy_(torch.randn(K, D, generator=torch.Generator().manual_seed(0)))
    y = np.arange(K) % CLASSES
    theta = doubles(ours)
    loss = nn_F.cross_entropy(scores(theta, E), torch.from_numpy(y))
    expected = descended(theta, theta, loss, 0.5, clip)
    assert step.replay(y, lr=0.5, clip=clip) == pytest.approx(loss.item(), rel=1e-5)
    for part, right in zip(ours.head, expected, strict=True):
        torch.testing.assert_close(part.double(), right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("method", [VERSE, VERSENewSample, TinyER])
@pytest.mark.parametrize("rule", [Reservoir, ClassBalanced])
@pytest.mark.parametrize("settings", [{}, {"clip": None, "C": 3}, {"dtype": "float16"}])
def test_a_whole_stream(method: type, rule: type, settings: dict) -> None:
    """From the first sample on, with new classes on the way: the general form does the same."""
    chosen = dict(settings)
    dtype = chosen.pop("dtype", "float32")
    by_hand, general = (method(network(), rule(20, dtype=dtype), **chosen) for _ in range(2))
    assert by_hand.linear is not None
    general.linear, general.virtual = None, general.theta.copy()
    Z = torch.randn(60, 3, 2, 2, generator=torch.Generator().manual_seed(0))
    for t, z in enumerate(Z):
        by_hand.learn_one(z, t // 7)
        general.learn_one(z, t // 7)
        if method is not TinyER and t:
            assert by_hand.losses["loss"] == pytest.approx(general.losses["loss"], rel=1e-3)
    for name, value in by_hand.state().items():
        torch.testing.assert_close(value, general.state()[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("row", range(3 * K + 1))
def test_what_is_not_finite_is_refused(clip: float | None, row: int) -> None:
    """A sample that is finite, but whose loss is not: nothing changes, whichever set it is in."""
    ours, phi = net(0), net(1)
    before = ours.data.clone()
    step = LinearStep(ours)
    E = torch.from_numpy(step.rows(3 * K + 1))
    E.copy_(torch.randn(E.shape, generator=torch.Generator().manual_seed(0)))
    E[row] = 1e38
    y = np.zeros(3 * K + 1, np.int64)
    y[row] = 1 - int((E[row] @ ours.head[0].t() + ours.head[1])[:2].argmax())  # the wrong one
    how = {"alpha": 0.3, "beta": 0.7, "lam": 0.4, "clip": clip}
    with pytest.raises(Refused, match="not finite"):
        step.look_ahead(K, y[K : 2 * K], y[2 * K :], phi, **how)
    with pytest.raises(Refused, match="not finite"):
        step.replay(y, lr=0.1, clip=clip)
    assert torch.equal(ours.data, before)


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        learner = TinyER(network(), Reservoir(5))
        learner.learn_one(torch.ones(3, 2, 2), 0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
