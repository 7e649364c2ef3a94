"""Threads that wait for each other: whoever imports NumPy first gets no slower steps."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy, torch  # as most programs begin
from threadpoolctl import threadpool_info
import verse.network.products
blas = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
print(max(blas, default=1))
"""


@pytest.mark.parametrize(("asked", "found"), [(None, 1), ("2", 2)])
def test_numpy_has_one_thread_unless_more_are_asked_for(asked: str | None, found: int) -> None:
    threads = (os.process_cpu_count if hasattr(os, "process_cpu_count") else os.cpu_count)()
    if (threads or 1) < 2:
        pytest.skip("this machine has one core, so there is never a second thread")
    surroundings = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    if asked:
        surroundings["OPENBLAS_NUM_THREADS"] = asked
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=surroundings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(answer.stdout) == found
