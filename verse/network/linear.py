"""Steps on a linear F, with gradients written by hand: few large products, nothing copied.

On light features automatic differentiation and the copy θ_v cost more than the mathematics. With
the samples' embeddings E [m, d] and dS [m, classes], the derivative of a loss by their scores::

    gradient of (W, b) = (dSᵀ E, dSᵀ 1),      ‖gradient‖² = Σ_ij (dS dSᵀ)_ij (E Eᵀ + 1)_ij
    scores at θ − a · gradient = E Wᵀ + b − a (E E_vᵀ + 1) dS_v

so that θ_v and the norms follow from E Wᵀ and E Eᵀ: of many classes the weights are read once and
written once. ``tests/network/test_linear.py`` compares every step
with plain automatic differentiation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verse.network.net import Net
from verse.types import Refused

Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]

_ONE = torch.ones(1, 1)
ONE_THREAD = 1 << 20
"""Weights up to which a second thread costs more than it gives (waking it takes longer)."""


class LinearStep:
    """The products of a step on ``net``, whose F is linear, and the storage they are written to.

    >>> from verse.network.plastic import Head, Plastic
    >>> net = Net(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)))
    >>> net.grow_to(2)
    >>> step = LinearStep(net)
    >>> _ = step.rows(1).fill_(1)
    >>> step.replay(np.array([0]), lr=0.5, clip=None)
    0.693...
    >>> net.state()["head.bias"].tolist()
    [0.25, -0.25]
    """

    def __init__(self, net: Net) -> None:
        self.net = net
        self.E = net.data.new_empty(0, 0)
        self._plan: _Plan | None = None

    @classmethod
    def of(cls, net: Net) -> LinearStep | None:
        """One for ``net`` if it is linear and on the processor, else None."""
        return cls(net) if net.linear and net.data.device.type == "cpu" else None

    def rows(self, m: int) -> Tensor:
        """Storage for the embeddings [m, d] of the next step's samples; the caller fills it."""
        if self.E.shape[0] != m:
            self.E = self.net.data.new_empty(m, self.net.module.head.d)
        return self.E

    def replay(self, y: Ints, *, lr: float, clip: float | None) -> float:
        """One descent of the cross-entropy of all samples; returns it. Refuses what is not finite
        before anything changes."""
        with _threads(self.net):
            plan = self._find_plan(0, len(y), len(y))
            plan.score()
            if clip is not None and not plan.few:
                plan.multiply(whole=True)
            loss = cross_entropy_in_place(plan.s_both, y)
            plan.descend(lr, clip)
        return loss

    def look_ahead(
        self,
        rows_l: int,
        y_M: Ints,
        y_v: Ints,
        phi: Net,
        *,
        alpha: float,
        beta: float,
        lam: float,
        clip: float | None,
    ) -> tuple[float, float]:
        """VERSE's step, θ ← θ − β ∇ [CE(D_M) + λ MSE(D_l)] at θ_v = θ − α ∇ CE(D_v).

        ``E`` holds ``rows_l`` rows of D_l, then D_M, then D_v; D_M and D_v may share rows between
        them. Returns both losses.
        """
        with _threads(self.net):
            plan = self._find_plan(rows_l, len(y_M), len(y_v))
            plan.score()
            plan.multiply(whole=clip is not None)
            plan.dS_v.copy_(plan.S_v)
            loss_v = cross_entropy_in_place(plan.ds_v, y_v)
            a = alpha if clip is None else alpha * plan.clip_ahead(clip)
            plan.S_both.addmm_(plan.gram_both_v, plan.dS_v, alpha=-a)
            loss_M = cross_entropy_in_place(plan.s_M, y_M)
            loss_l = mean_square(plan.s_l, phi.scores(plan.E_l).numpy(), lam)
            plan.descend(beta, clip)
        return loss_v, loss_M + loss_l

    def _find_plan(self, rows_l: int, rows_M: int, rows_v: int) -> _Plan:
        plan = self._plan
        if plan is None or not plan.fits(self.net, self.E, rows_l, rows_M, rows_v):
            plan = self._plan = _Plan(self.net, self.E, rows_l, rows_M, rows_v)
        return plan


class _Plan:
    """All views that a step of this shape needs, made once: making them takes as long as using
    them. Arrays (small letters) and tensors share their storage."""

    def __init__(self, net: Net, E: Tensor, rows_l: int, rows_M: int, rows_v: int) -> None:
        m, n = E.shape[0], net.n
        self._made_for = net.data, net.grad, E, n, rows_l, rows_M, rows_v
        M, v, both = slice(rows_l, rows_l + rows_M), slice(m - rows_v, m), slice(0, rows_l + rows_M)
        # fewer classes than samples: then a gradient is small enough to write down
        self.few = n < m
        self._net, self._E = net, E
        self.W, self._b = net.head
        self._Wt, self._Et = self.W.t(), E.t()
        self.S, self.gram = E.new_empty(m, n), E.new_empty(m, m)
        self.S_v, self.S_both = self.S[v], self.S[both]
        self.dS_v = E.new_empty(rows_v, n)
        self.ds_v: Floats = self.dS_v.numpy()
        self.s_M: Floats = self.S[M].numpy()
        self.s_l: Floats = self.S[:rows_l].numpy()
        self.s_both: Floats = self.S_both.numpy()
        self.E_l, self._E_v, self._E_both = E[:rows_l], E[v], E[both]
        self._E_vt, self._S_both_t = self._E_v.t(), self.S_both.t()
        self.gram_both_v, self._gram_v = self.gram[both, v], self.gram[v, v]
        self._gram_both = self.gram[both, both]

    def fits(self, net: Net, E: Tensor, rows_l: int, rows_M: int, rows_v: int) -> bool:
        """Is it made for these weights and this number of samples and classes?"""
        data, grad, rows, *shape = self._made_for
        same = data is net.data and grad is net.grad and rows is E
        return same and shape == [net.n, rows_l, rows_M, rows_v]

    def score(self) -> None:
        """Scores of all samples."""
        torch.addmm(self._b, self._E, self._Wt, out=self.S)

    def multiply(self, *, whole: bool) -> None:
        """E Eᵀ + 1 (the 1 is the bias's), whole or what θ_v needs of it."""
        if self.few or not whole:
            torch.addmm(_ONE, self._E_both, self._E_vt, out=self.gram_both_v)
        else:
            torch.addmm(_ONE, self._E, self._Et, out=self.gram)

    def clip_ahead(self, clip: float) -> float:
        """min(1, clip / ‖gradient‖) of the virtual step."""
        if self.few:
            self._net.write_head_gradient(self.dS_v, self._E_v)
            norm = float(torch.linalg.vector_norm(self._net.grad))
        else:
            norm = _norm(self.dS_v, self._gram_v)
        return min(1.0, clip / _finite(norm)) if norm else 1.0

    def descend(self, lr: float, clip: float | None) -> None:
        """θ − lr · the gradient, which is not finite where anything before it was not."""
        dS = self.S_both
        if self.few:
            self._net.write_head_gradient(dS, self._E_both)
            norm = float(torch.linalg.vector_norm(self._net.grad))
        elif clip is None:  # a bound of the norm is enough to see whether it is finite
            norm = float(torch.linalg.vector_norm(dS) * torch.linalg.vector_norm(self._E_both))
        else:
            norm = _norm(dS, self._gram_both)
        norm = _finite(norm)
        rate = lr if clip is None or norm <= clip else lr * clip / norm
        if self.few:
            self._net.data.add_(self._net.grad, alpha=-rate)
        else:
            self.W.addmm_(self._S_both_t, self._E_both, alpha=-rate)
            self._b.sub_(dS.sum(0), alpha=rate)


def _norm(dS: Tensor, gram: Tensor) -> float:
    square = float(torch.mm(dS, dS.t()).mul_(gram).sum())
    return math.sqrt(square) if square > 0 else -square  # a rounding error; NaN stays


def _finite(norm: float) -> float:
    if not math.isfinite(norm):
        raise Refused("the loss or its gradient is not finite; nothing was learned")
    return norm


def cross_entropy_in_place(s: Floats, y: Ints) -> float:
    """Mean of −log softmax(s)[y]; its derivative takes the place of the scores.

    >>> s = np.zeros((1, 2), np.float32)
    >>> cross_entropy_in_place(s, np.array([0])), s.tolist()
    (0.693..., [[-0.5, 0.5]])
    """
    at, n = np.arange(len(y)), len(y)
    with np.errstate(all="ignore"):  # what is not finite is refused later
        s -= np.maximum.reduce(s, 1, keepdims=True)
        right = s[at, y]
        np.exp(s, out=s)
        total = np.add.reduce(s, 1)
        s /= (total * np.float32(n))[:, None]
        s[at, y] -= np.float32(1 / n)
        return float(np.add.reduce(np.log(total) - right)) / n


def mean_square(s: Floats, target: Floats, weight: float) -> float:
    """weight × mean of (s − target)²; its derivative takes the place of the scores.

    >>> s = np.ones((1, 2), np.float32)
    >>> mean_square(s, np.zeros((1, 2), np.float32), 0.5), s.tolist()
    (0.5, [[0.5, 0.5]])
    """
    with np.errstate(all="ignore"):
        s -= target
        value = weight * float(np.add.reduce(np.square(s), None)) / s.size
        s *= np.float32(2 * weight / s.size)
    return value


@contextmanager
def _threads(net: Net) -> Iterator[None]:
    before = torch.get_num_threads()
    if before == 1 or net.data.numel() > ONE_THREAD:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
