"""Products of every size and layout, against the plain one in double precision."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from verse.network.products import ROWS, SMALL, multiply, multiply_tensors

SHAPES = {
    "small": (17, 40, 29),
    "one sample": (29, 1, 40),
    "small in pieces": (2 * ROWS + 3, 1280, 29),
    "many rows": (8 * ROWS, 1280, 29),
    "large": (ROWS, 2000, SMALL // 2000),
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_multiply(kind: str, transposed: bool) -> None:
    m, d, n = SHAPES[kind]
    rng = np.random.default_rng(0)
    a = rng.normal(size=(m, d)).astype(np.float32)
    b = rng.normal(size=(d, n)).astype(np.float32)
    if transposed:  # the same values, as views of other layouts
        a, b = a.T.copy().T, b.T.copy().T
    out = np.full((m, n), np.nan, np.float32)
    multiply(a, b, out)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)


def test_what_is_not_finite_stays() -> None:
    a = np.full((2, 3), np.inf, np.float32)
    out = np.zeros((2, 2), np.float32)
    with np.errstate(invalid="ignore"):
        multiply(a, np.zeros((3, 2), np.float32), out)
    assert np.isnan(out).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(32, 512), (36, 16, 512)], ids=["matrices", "batches"])
def test_products_of_tensors(threads: int, shape: tuple[int, ...]) -> None:
    had = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        a = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        b = torch.randn((*shape[:-2], 40, 512), generator=torch.Generator().manual_seed(1))
        out = torch.full((*shape[:-1], 40), torch.nan)
        transposed = b.transpose(-1, -2)  # a view of another layout
        assert multiply_tensors(a, transposed, out) is out
        exact = a.double() @ transposed.double()
        torch.testing.assert_close(out.double(), exact, rtol=1e-4, atol=1e-3)
    finally:
        torch.set_num_threads(had)


def test_products_of_tensors_keep_what_is_not_finite(recwarn: pytest.WarningsRecorder) -> None:
    out = multiply_tensors(torch.full((2, 3), torch.inf), torch.zeros(3, 2), torch.zeros(2, 2))
    assert out.isnan().all()
    assert not recwarn.list


IMPORTS_NUMPY_FIRST = """
import numpy, torch  # as most programs begin
from threadpoolctl import threadpool_info
import verse.network.products
blas = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
print(max(blas, default=1))
"""


@pytest.mark.parametrize(("asked", "found"), [(None, 1), ("2", 2)])
def test_numpy_has_one_thread_unless_more_are_asked_for(asked: str | None, found: int) -> None:
    if (os.cpu_count() or 1) < 2:
        pytest.skip("this machine has one core, so there is never a second thread")
    surroundings = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    if asked:
        surroundings["OPENBLAS_NUM_THREADS"] = asked
    answer = subprocess.run(
        [sys.executable, "-c", IMPORTS_NUMPY_FIRST],
        env=surroundings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(answer.stdout) == found
