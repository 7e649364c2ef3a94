"""Products of small matrices, as steps on light features need them.

A step on a linear head multiplies some twenty samples with some thirty classes. There the library
that NumPy calls is two to five times as fast as the one that PyTorch calls, because it has kernels
for small matrices and its calls cost less. Large products are PyTorch's where there are threads to
share them. Which is taken follows from shapes and threads alone, never from a measurement: a stream
that is resumed must have the same bits. A second thread costs small products more than it gives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

Floats: TypeAlias = npt.NDArray[np.float32]

SMALL = 1_000_000
"""Multiplications up to which a product is small."""
ROWS = 16
"""Rows of a piece, where a product is small in pieces."""

ONE_THREAD = 1 << 21
"""Values that a product reads, up to which waking a second thread takes longer than it saves; with
other work on the machine many times longer."""


def multiply(a: Floats, b: Floats, out: Floats) -> None:
    """out = a b, for a [m, d], b [d, n] and out [m, n].

    >>> out = np.empty((1, 1), np.float32)
    >>> multiply(np.ones((1, 3), np.float32), np.ones((3, 1), np.float32), out)
    >>> out.tolist()
    [[3.0]]
    """
    (m, d), n = a.shape, b.shape[1]
    if d == 1:  # one sample: no sums at all
        np.multiply(a, b, out=out)
    elif m * d * n <= SMALL:
        np.matmul(a, b, out=out)
    elif ROWS * d * n <= SMALL and m <= 4 * ROWS:
        for start in range(0, m, ROWS):
            np.matmul(a[start : start + ROWS], b, out=out[start : start + ROWS])
    else:
        torch.mm(torch.from_numpy(a), torch.from_numpy(b), out=torch.from_numpy(out))


def multiply_tensors(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """out = a b, for matrices or batches of them; returns ``out``.

    With one thread NumPy's library takes them all: on AMD processors PyTorch's own does without
    AVX-512. With more threads PyTorch shares a product among them, and NumPy, as verse sets it,
    does not.

    >>> multiply_tensors(torch.ones(2, 3), torch.ones(3, 1), torch.empty(2, 1)).tolist()
    [[3.0], [3.0]]
    """
    if out.device.type == "cpu" and torch.get_num_threads() == 1:
        with np.errstate(all="ignore"):  # the caller judges what is not finite
            np.matmul(a.numpy(), b.numpy(), out=out.numpy())
        return out
    return torch.matmul(a, b, out=out)


@contextmanager
def limit_threads(values: int) -> Iterator[None]:
    """One thread of PyTorch inside, if what is computed there reads no more than so many
    ``values``.

    >>> before = torch.get_num_threads()
    >>> with limit_threads(1000):
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    before = torch.get_num_threads()
    if before == 1 or values > ONE_THREAD:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def limit_numpy() -> None:
    """One thread for NumPy's products, unless OPENBLAS_NUM_THREADS asks for more.

    ``import verse`` sets this variable, which NumPy reads when it is imported. Where it was
    imported before, its threads would spin: with two other busy processes a step took 30 ms instead
    of one.
    """
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        threadpool_limits(1, user_api="blas")


limit_numpy()
