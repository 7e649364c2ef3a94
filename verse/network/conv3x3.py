"""A 3×3 convolution of small maps, forward and backward, from weights stored [3, 3, in, out].

Two ways to the same sums: Winograd's for batches, and for a few samples, where reading transformed
weights would cost more than it spares, one product with the 9 neighbours of every position.
"""

from __future__ import annotations

import torch
from torch import Tensor

from verse.network.products import multiply_tensors
from verse.network.scratch import scratch
from verse.network.winograd import POINTS, transform_weights, transforms

FEW = 8  # below, Winograd's transformed weights (4 × the weights) do not pay
SLICE = 64
MOST = 64  # samples answered at once, which bounds the working storage


class Conv3x3:
    """One convolution (stride 1, one ring of zeros) with its working storage.

    ``key`` changes whenever the weights may have; transformed weights are kept until then.

    >>> conv, x, w = Conv3x3("doc"), torch.randn(7, 7, 2, 4), torch.randn(3, 3, 4, 5)
    >>> conv.answer(x, w, key=None).shape
    torch.Size([7, 7, 2, 5])
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def answer(self, x: Tensor, weight: Tensor, key: object) -> Tensor:
        """x [h, w, n, in] → [h, w, n, out]."""
        y = x.new_empty(*x.shape[:3], weight.shape[3])
        if x.shape[2] > MOST:
            parts = [
                self.answer(part.contiguous(), weight, key) for part in torch.split(x, MOST, 2)
            ]
            return torch.cat(parts, 2, out=y)
        self._apply(x, weight, key, y, "answer")
        return y

    def forward(self, x: Tensor, weight: Tensor, key: object, y: Tensor) -> Tensor:
        """The same into ``y``; returns what ``backward`` needs, until the next ``forward``."""
        return self._apply(x, weight, key, y, f"train.{self.name}")

    def _apply(self, x: Tensor, weight: Tensor, key: object, y: Tensor, name: str) -> Tensor:
        high, wide, n, c_in = x.shape
        if n < FEW:
            columns = _neighbours(x)
            rows = y.view(-1, weight.shape[3])
            multiply_tensors(columns.view(-1, 9 * c_in), _matrix(weight), rows)
            return columns
        U = self._weights(weight, name.partition(".")[0], key)
        sizes = transforms(high, wide, x.device)
        V = scratch.take(f"{name}.V", (POINTS**2, sizes.tiles * n, c_in), x.device)
        multiply_tensors(sizes.inputs, x.view(high * wide, -1), V.view(-1, n * c_in))
        M = scratch.take("M", (*V.shape[:2], U.shape[2]), x.device)
        multiply_tensors(V, U, M)
        multiply_tensors(sizes.outputs, M.view(-1, n * U.shape[2]), y.view(high * wide, -1))
        return V

    def backward(
        self, dy: Tensor, saved: Tensor, weight: Tensor, dw: Tensor, key: object, *, need_dx: bool
    ) -> Tensor | None:
        """From dy [h, w, n, out] write d/dw into ``dw`` [3, 3, in, out] and return d/dx."""
        high, wide, n, c_out = dy.shape
        if n < FEW:
            flat = dy.reshape(-1, c_out)
            multiply_tensors(saved.view(flat.shape[0], -1).t(), flat, _matrix(dw))
            return _gather(dy @ _matrix(weight).t(), weight.shape[2]) if need_dx else None
        sizes = transforms(high, wide, dy.device)
        c_in = weight.shape[2]
        rows = (POINTS**2, sizes.tiles * n)
        dM = scratch.take("dM", (*rows, c_out), dy.device)
        multiply_tensors(sizes.outputs.t(), dy.reshape(high * wide, -1), dM.view(-1, n * c_out))
        # a slice of the input channels at a time: their part of d/dU stays in the cache
        for i in range(0, c_in, SLICE):
            part = saved[:, :, i : i + SLICE].transpose(1, 2)
            dU = scratch.take("dU", (POINTS**2, part.shape[1], c_out), dy.device)
            multiply_tensors(part, dM, dU)
            into = dw[:, :, i : i + SLICE].view(9, -1)
            multiply_tensors(sizes.weights.t(), dU.view(POINTS**2, -1), into)
        if not need_dx:
            return None
        U = self._weights(weight, "train", key)
        dV = scratch.take("dV", (*rows, c_in), dy.device)
        multiply_tensors(dM, U.transpose(1, 2), dV)
        dx = dy.new_empty(high, wide, n, c_in)
        multiply_tensors(sizes.inputs.t(), dV.view(-1, n * c_in), dx.view(high * wide, -1))
        return dx

    def _weights(self, weight: Tensor, purpose: str, key: object) -> Tensor:
        name = f"{self.name}.{purpose}.U"
        U = scratch.take(name, (POINTS**2, *weight.shape[2:]), weight.device)
        if key is None or scratch.owner.get(name) != key:
            scratch.owner.pop(name, None)
            transform_weights(_matrix(weight).view(9, -1), U)
            scratch.owner[name] = key
        return U


def _matrix(weight: Tensor) -> Tensor:
    """[3, 3, in, out] → [9 · in, out]."""
    return weight.reshape(-1, weight.shape[3])


def _neighbours(x: Tensor) -> Tensor:
    """x [h, w, n, c] → [h, w, n, 9 · c]."""
    high, wide = x.shape[:2]
    padded = torch.nn.functional.pad(x, (0, 0, 0, 0, 1, 1, 1, 1))
    return torch.cat(
        [padded[i : i + high, j : j + wide] for i in range(3) for j in range(3)], dim=3
    )


def _gather(columns: Tensor, c: int) -> Tensor:
    """The transpose of ``_neighbours``: every position collects from its neighbours' columns."""
    high, wide, n, _ = columns.shape
    padded = columns.new_zeros(high + 2, wide + 2, n, c)
    for tap, part in enumerate(torch.split(columns, c, dim=3)):
        i, j = divmod(tap, 3)
        padded[i : i + high, j : j + wide] += part
    return padded[1:-1, 1:-1].contiguous()
