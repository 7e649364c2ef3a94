"""How many threads compute: for small products a second one costs more than it gives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from threadpoolctl import threadpool_limits

SMALL = 1 << 21
"""Values that a product reads, up to which waking a second thread takes longer than it saves; with
other work on the machine many times longer."""


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
    if before == 1 or values > SMALL:
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
    assert np.__version__  # it must be there before its library can be found
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        threadpool_limits(1, user_api="blas")
