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
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from verse.network.net import Net
from verse.network.products import Floats, limit_threads, multiply
from verse.types import Refused

Ints: TypeAlias = npt.NDArray[np.int64]


class LinearStep:
    """The products of a step on ``net``, whose F is linear, and the storage they are written to.

    Parameters
    ----------
    net
        The network that learns; its head is all it has.

    >>> from verse.network.plastic import Head, Plastic
    >>> net = Net(Plastic(torch.nn.Identity(), Head(2), z_shape=(2,)))
    >>> net.grow_to(2)
    >>> step = LinearStep(net)
    >>> step.rows(1).fill(1)
    >>> step.replay(np.array([0]), lr=0.5, clip=None)
    0.693...
    >>> net.state()["head.bias"].tolist()
    [0.25, -0.25]
    """

    def __init__(self, net: Net) -> None:
        self.net = net
        self.E: Floats = np.empty((0, 0), np.float32)
        self._plan: _Plan | None = None

    @classmethod
    def of(cls, net: Net) -> LinearStep | None:
        """One for ``net`` if it is linear and on the processor, else None."""
        return cls(net) if net.linear and net.data.device.type == "cpu" else None

    def rows(self, m: int) -> Floats:
        """Storage for the embeddings [m, d] of the next step's samples; the caller fills it."""
        if len(self.E) != m:
            self.E = np.empty((m, self.net.module.head.d), np.float32)
        return self.E

    def replay(self, y: Ints, *, lr: float, clip: float | None) -> float:
        """One descent of the cross-entropy of all samples; returns it. Refuses what is not finite
        before anything changes."""
        # what is not finite is refused later
        with limit_threads(self.net.data.numel()), np.errstate(all="ignore"):
            plan = self._find_plan(0, len(y), len(y))
            plan.score()
            if clip is not None and not plan.few:
                plan.multiply(whole=True)
            loss = cross_entropy_in_place(plan.S_both, y)
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
        # what is not finite is refused later
        with limit_threads(self.net.data.numel()), np.errstate(all="ignore"):
            plan = self._find_plan(rows_l, len(y_M), len(y_v))
            plan.score()
            plan.multiply(whole=clip is not None)
            plan.dS_v[:] = plan.S_v
            loss_v = cross_entropy_in_place(plan.dS_v, y_v)
            a = alpha if clip is None else alpha * plan.clip_ahead(clip)
            plan.look_ahead(a)
            loss_M = cross_entropy_in_place(plan.S_M, y_M)
            loss_l = mean_square(plan.S_l, phi.score_rows(plan.E_l), lam)
            plan.descend(beta, clip)
        return loss_v, loss_M + loss_l

    def _find_plan(self, rows_l: int, rows_M: int, rows_v: int) -> _Plan:
        plan = self._plan
        if plan is None or not plan.fits(self.net, self.E, rows_l, rows_M, rows_v):
            plan = self._plan = _Plan(self.net, self.E, rows_l, rows_M, rows_v)
        return plan


class _Plan:
    """All views that a step of this shape needs, made once: making them takes as long as using
    them."""

    def __init__(self, net: Net, E: Floats, rows_l: int, rows_M: int, rows_v: int) -> None:
        m, n = len(E), net.n
        self._made_for = net.data, net.grad, E, n, rows_l, rows_M, rows_v
        M, v, both = slice(rows_l, rows_l + rows_M), slice(m - rows_v, m), slice(0, rows_l + rows_M)
        # fewer classes than samples: then a gradient is small enough to write down
        self.few = n < m
        self._E = E
        weight, bias = net.head
        W: Floats = weight.numpy()
        self._b: Floats = bias.numpy()
        weight, bias = net.head_gradient
        self._dW: Floats = weight.numpy()
        self._db: Floats = bias.numpy()
        self._net, self._Wt, self._Et = net, W.T, E.T
        self._gradient: Floats = net.grad.numpy()
        self.S, self._gram = np.empty((m, n), np.float32), np.empty((m, m), np.float32)
        self.S_v, self.S_both = self.S[v], self.S[both]
        self.S_M, self.S_l = self.S[M], self.S[:rows_l]
        self.dS_v = np.empty((rows_v, n), np.float32)
        self.E_l, self._E_v, self._E_both = E[:rows_l], E[v], E[both]
        self._E_vt, self._S_both_t, self._dS_vt = self._E_v.T, self.S_both.T, self.dS_v.T
        self._gram_both_v = np.empty((rows_l + rows_M, rows_v), np.float32)
        self._gram_v, self._gram_both = self._gram[v, v], self._gram[both, both]
        self._moved = np.empty_like(self.S_both)

    def fits(self, net: Net, E: Floats, rows_l: int, rows_M: int, rows_v: int) -> bool:
        """Is it made for these weights and this number of samples and classes?"""
        data, grad, rows, *shape = self._made_for
        same = data is net.data and grad is net.grad and rows is E
        return same and shape == [net.n, rows_l, rows_M, rows_v]

    def score(self) -> None:
        """Scores of all samples."""
        multiply(self._E, self._Wt, self.S)
        self.S += self._b

    def multiply(self, *, whole: bool) -> None:
        """E Eᵀ + 1 (the 1 is the bias's), whole or what θ_v needs of it."""
        if self.few or not whole:
            multiply(self._E_both, self._E_vt, self._gram_both_v)
            self._gram_both_v += 1
        else:
            multiply(self._E, self._Et, self._gram)
            self._gram += 1
            m, v = self._gram_both_v.shape
            self._gram_both_v[:] = self._gram[:m, -v:]

    def look_ahead(self, a: float) -> None:
        """The scores of D_l and D_M at θ_v."""
        multiply(self._gram_both_v, self.dS_v, self._moved)
        self._moved *= np.float32(a)
        self.S_both -= self._moved

    def clip_ahead(self, clip: float) -> float:
        """min(1, clip / ‖gradient‖) of the virtual step."""
        norm = (
            self._write_gradient(self.dS_v, self._dS_vt, self._E_v)
            if self.few
            else _norm(self.dS_v, self._gram_v)
        )
        return min(1.0, clip / _finite(norm)) if norm else 1.0

    def descend(self, lr: float, clip: float | None) -> None:
        """θ − lr · the gradient, which is not finite where anything before it was not."""
        dS = self.S_both
        if self.few:
            norm = self._write_gradient(dS, self._S_both_t, self._E_both)
        elif clip is None:  # a bound of the norm is enough to see whether it is finite
            norm = math.sqrt(_square(dS)) * math.sqrt(_square(self._E_both))
        else:
            norm = _norm(dS, self._gram_both)
        norm = _finite(norm)
        rate = lr if clip is None or norm <= clip else lr * clip / norm
        if self.few:
            self._net.data.sub_(self._net.grad, alpha=rate)
        else:
            self._net.head[0].addmm_(
                torch.from_numpy(self._S_both_t), torch.from_numpy(self._E_both), alpha=-rate
            )
            self._b -= np.float32(rate) * dS.sum(0)

    def _write_gradient(self, dS: Floats, dSt: Floats, E: Floats) -> float:
        """The gradient into ``grad``; its norm."""
        multiply(dSt, E, self._dW)
        np.add.reduce(dS, 0, out=self._db)
        return math.sqrt(_square(self._gradient))


def _square(values: Floats) -> float:
    """The sum of squares; not finite where it is too large, and then the sample is refused."""
    flat = values.ravel()
    return float(np.dot(flat, flat))


def _norm(dS: Floats, gram: Floats) -> float:
    between = np.matmul(dS, dS.T)
    between *= gram
    square = float(between.sum())
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
    s -= target
    value = weight * _square(s) / s.size
    s *= np.float32(2 * weight / s.size)
    return value
