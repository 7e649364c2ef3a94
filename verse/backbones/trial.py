"""Two engines for one network: do they give the same features, and which is faster here?

The answer to the second is kept in the user's cache, so that the choice, and with it every bit of
a feature, is the same at the next start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verse.backbones.precision import describe_machine
from verse.paths import cache_directory, write_atomic

if TYPE_CHECKING:
    from verse.backbones.engine import Engine

TOLERANCE = 1e-3
"""Of the largest value; measured are 1e-6 to 3e-6, a wrong operator is far beyond."""

# below these, ONNX Runtime stays: its features do not depend on the batch
GAIN = 1.25
SPARED = 1e-3  # seconds
ROUNDS = 5


def choose_engine(
    onnx: Engine, start_plain: Callable[[], Engine], example: Tensor, model: bytes
) -> str:
    """The name of the engine to use, or "differs" where ONNX Runtime gives other features."""
    facts = json.dumps(describe_machine(), sort_keys=True) + f" {onnx.threads}"
    digest = hashlib.sha256(facts.encode() + hashlib.sha256(model).digest()).hexdigest()[:32]
    file = cache_directory() / "engines" / f"{digest}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(file.read_text())["engine"])
    plain = start_plain()
    found = "differs"
    times: dict[str, float] = {}
    if is_same(onnx, plain, example):
        times = compare_times(onnx, plain, example)
        spared = times["onnxruntime"] - times["torch"]
        clearly = spared >= SPARED and times["onnxruntime"] >= GAIN * times["torch"]
        found = "torch" if clearly else "onnxruntime"
    with contextlib.suppress(OSError):  # a read-only home: try again next time
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps({"engine": found, "seconds": times}).encode())
    return found


def is_same(a: Engine, b: Engine, example: Tensor) -> bool:
    """Do both engines give the same features of a noisy input?"""
    inputs = _noise(example)
    one, other = a(inputs), b(inputs)
    if one.shape != other.shape:
        return False
    largest = float(other.abs().max()) if other.numel() else 0.0
    return bool(((one - other).abs() <= TOLERANCE * max(largest, 1e-6)).all())


def compare_times(a: Engine, b: Engine, example: Tensor) -> dict[str, float]:
    """Median seconds of each for one input, measured in turns."""
    inputs = _noise(example)
    times: dict[str, list[float]] = {a.name: [], b.name: []}
    for _ in range(ROUNDS):
        for engine in (a, b):
            start = time.perf_counter()
            engine(inputs)
            times[engine.name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def _noise(example: Tensor) -> npt.NDArray[np.generic]:
    random = np.random.default_rng(0)
    shape = tuple(example.shape)
    if example.dtype == torch.uint8:
        return random.integers(0, 256, shape, dtype=np.uint8)
    return random.standard_normal(shape).astype(str(example.dtype).removeprefix("torch."))
