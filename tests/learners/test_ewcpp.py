"""EWC++ against a computation by plain autograd."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.learners.reference import Reference, flat_of, mixed
from verse.checks import small_network, small_stream
from verse.learners import EWCPP


@pytest.mark.parametrize("penalty", ["implicit", "explicit"])
def test_a_run_by_autograd(penalty: str) -> None:
    """Fisher windows, normalisation, anchors and weights over 36 samples and three triggers."""
    lam, a, window, every, lr = 3.0, 0.9, 5, 11, 0.02
    F = small_network()
    ours = EWCPP(
        F, lam=lam, a=a, window=window, penalty=penalty, trigger=f"every:{every}", lr=lr, clip=None
    )
    ref = Reference(F, classes=3)
    fisher = torch.zeros_like(ref.flat)
    squares, omega, anchor = fisher.clone(), fisher.clone(), fisher.clone()
    for t, (z, label) in enumerate(mixed(small_stream(F))):
        known = ref.n
        y = ref.welcome(label)
        if t and t % every == 0:
            live = ref.live(fisher, known)
            low, high = fisher[live].min(), fisher[live].max()
            omega = torch.where(live, (fisher - low) / (high - low), 0.0)
            anchor = ref.flat
        g = ref.gradient(cross_entropy(ref.scores(z[None]), torch.tensor([y])))
        ref.spring_step(g, lr, lam, omega, anchor, penalty)
        squares += g**2
        if (t + 1) % window == 0:
            fisher = (1 - a) * fisher + a * squares / window
            squares = torch.zeros_like(fisher)
        ours.learn_one(z, label)
    assert float(omega.max()) == 1.0
    for vector, expected in (
        (ours.fisher, fisher),
        (ours.squares, squares),
        (ours.importance, omega),
        (ours.anchor, anchor),
        (ours.theta, ref.flat),
    ):
        torch.testing.assert_close(flat_of(vector, 3), expected, rtol=2e-3, atol=2e-5)


def test_the_first_window_by_hand() -> None:
    """A linear model, one class after another: g² of one sample is known in closed form."""
    from torch import nn

    from verse.network import Head, Plastic

    learner = EWCPP(Plastic(nn.Identity(), Head(2), z_shape=(2,)), window=2, lr=1e-9, clip=None)
    z = torch.tensor([3.0, 4.0])
    learner.learn_one(z, 0)  # one class: probability 1, no gradient
    learner.learn_one(z, 1)
    s = learner.theta.scores(z[None])[0]
    p = torch.softmax(s, 0)
    g = torch.stack((p[0] * z, (p[1] - 1) * z))  # d CE / dW
    fisher = learner.fisher.layout.views(learner.fisher.data)["head.weight"][:2]
    torch.testing.assert_close(fisher, 0.9 * g**2 / 2)


def test_a_large_penalty_holds_the_important_weights() -> None:
    F = small_network("linear")
    free, held = (EWCPP(F, lam=lam, trigger="every:24", lr=0.05) for lam in (0.0, 5.0))
    stream = small_stream(F)
    for z, y in stream:
        free.learn_one(z, y)
        held.learn_one(z, y)
    weight = held.importance.data
    drift = [
        float((weight * (each.theta.data - each.anchor.data).square()).sum())
        for each in (free, held)
    ]
    assert drift[1] < 0.5 * drift[0]


def test_a_trigger_before_the_first_full_window_uses_the_open_one() -> None:
    F = small_network("linear")
    learner = EWCPP(F, window=50, trigger="every:20")
    for z, y in small_stream(F)[:22]:
        learner.learn_one(z, y)
    assert float(learner.importance.data.max()) == pytest.approx(1.0)
