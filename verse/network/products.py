"""Products of small matrices, as steps on light features need them.

A step on a linear head multiplies some twenty samples with some thirty classes. There the library
that NumPy calls is two to five times as fast as the one that PyTorch calls, because it has kernels
for small matrices and its calls cost less. Large products are PyTorch's. Which is taken follows
from the shapes alone, never from a measurement: a stream that is resumed must have the same bits.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from verse.network.threads import limit_numpy

limit_numpy()

Floats: TypeAlias = npt.NDArray[np.float32]

SMALL = 1_000_000
"""Multiplications up to which a product is small."""
ROWS = 16
"""Rows of a piece, where a product is small in pieces."""


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
