"""A 3×3 convolution of small maps, forward and backward, from weights stored [3, 3, in, out].

Two ways to the same sums: Winograd's for batches, and for a few samples, where reading transformed
weights would cost more than it spares, one product with the 9 neighbours of every position.
"""

from __future__ import annotations

import torch
from torch import Tensor

from verse.kernels.scratch import Scratch
from verse.kernels.winograd import POINTS, Transforms, transformed_weights, transforms

FEW = 8  # below, Winograd's transformed weights (4 × the weights) do not pay
MOST = 64  # samples answered at once, which bounds the working storage
_scratch = Scratch()


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
        n = x.shape[2]
        if n < FEW:
            return _neighbours(x) @ _matrix(weight)
        if n > MOST:
            parts = [self.answer(part, weight, key) for part in x.split(MOST, 2)]
            return torch.cat(parts, 2)
        U = self._weights(weight, "answer", key)
        V, sizes = self._points(x, "answer.V")
        return _from_points(self._products(V, U), sizes, x, U.shape[2])

    def forward(self, x: Tensor, weight: Tensor, key: object) -> tuple[Tensor, Tensor]:
        """The same, and what ``backward`` needs of x; valid until the next ``forward``."""
        if x.shape[2] < FEW:
            columns = _neighbours(x)
            return columns @ _matrix(weight), columns
        U = self._weights(weight, "train", key)
        V, sizes = self._points(x, f"{self.name}.V")
        return _from_points(self._products(V, U), sizes, x, U.shape[2]), V

    def backward(
        self, dy: Tensor, saved: Tensor, weight: Tensor, dw: Tensor, key: object, *, need_dx: bool
    ) -> Tensor | None:
        """From dy [h, w, n, out] write d/dw into ``dw`` [3, 3, in, out] and return d/dx."""
        high, wide, n, c_out = dy.shape
        if n < FEW:
            flat = dy.reshape(-1, c_out)
            torch.mm(saved.view(flat.shape[0], -1).t(), flat, out=_matrix(dw))
            return _gathered(dy @ _matrix(weight).t(), weight.shape[2]) if need_dx else None
        sizes = transforms(high, wide, dy.device)
        c_in = weight.shape[2]
        rows = (POINTS**2, sizes.tiles * n)
        dM = _scratch.take("dM", (*rows, c_out), dy.device)
        torch.mm(sizes.outputs.t(), dy.reshape(high * wide, -1), out=dM.view(-1, n * c_out))
        dU = _scratch.take("dU", (POINTS**2, c_in, c_out), dy.device)
        torch.bmm(saved.transpose(1, 2), dM, out=dU)
        torch.mm(sizes.weights.t(), dU.view(POINTS**2, -1), out=dw.view(9, -1))
        if not need_dx:
            return None
        U = self._weights(weight, "train", key)
        dV = _scratch.take("dV", (*rows, c_in), dy.device)
        torch.bmm(dM, U.transpose(1, 2), out=dV)
        dx = torch.mm(sizes.inputs.t(), dV.view(-1, n * c_in))
        return dx.view(high, wide, n, c_in)

    def _weights(self, weight: Tensor, purpose: str, key: object) -> Tensor:
        name = f"{self.name}.{purpose}.U"
        U = _scratch.take(name, (POINTS**2, *weight.shape[2:]), weight.device)
        if key is None or _scratch.owner.get(name) != key:
            _scratch.owner.pop(name, None)
            transformed_weights(_matrix(weight).view(9, -1), U)
            _scratch.owner[name] = key
        return U

    def _points(self, x: Tensor, name: str) -> tuple[Tensor, Transforms]:
        high, wide, n, c_in = x.shape
        sizes = transforms(high, wide, x.device)
        V = _scratch.take(name, (POINTS**2, sizes.tiles * n, c_in), x.device)
        torch.mm(sizes.inputs, x.reshape(high * wide, -1), out=V.view(-1, n * c_in))
        return V, sizes

    def _products(self, V: Tensor, U: Tensor) -> Tensor:
        M = _scratch.take("M", (*V.shape[:2], U.shape[2]), V.device)
        return torch.bmm(V, U, out=M)


def _from_points(M: Tensor, sizes: Transforms, x: Tensor, c_out: int) -> Tensor:
    high, wide, n, _ = x.shape
    return torch.mm(sizes.outputs, M.view(-1, n * c_out)).view(high, wide, n, c_out)


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


def _gathered(columns: Tensor, c: int) -> Tensor:
    """The transpose of ``_neighbours``: every position collects from its neighbours' columns."""
    high, wide, n, _ = columns.shape
    padded = columns.new_zeros(high + 2, wide + 2, n, c)
    for tap, part in enumerate(columns.split(c, dim=3)):
        i, j = divmod(tap, 3)
        padded[i : i + high, j : j + wide] += part
    return padded[1:-1, 1:-1].contiguous()
