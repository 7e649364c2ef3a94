"""What runs G: ONNX Runtime or PyTorch, whichever is faster and gives the same features.

Does the feature of an image depend on its batch? Measured on x86 with both backbones, alone
against a batch of 33, one against two threads: ONNX Runtime gives the same bits; eager PyTorch can
differ by 2e-6 of the largest value, and the two engines differ by 1e-6 to 3e-6 of it. Which one is
faster is kept in the user's cache: the choice, and every bit of a feature, is the same at the next
start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from verse.backbones.onnx_graph import convert_module
from verse.backbones.onnx_layers import Unconvertible
from verse.backbones.onnx_torch import export_with_torch
from verse.backbones.precision import describe_machine
from verse.paths import cache_directory, write_atomic
from verse.types import BadSetting

ENGINES = ("auto", "onnxruntime", "torch")

TOLERANCE = 1e-3
"""Of the largest value; measured are 1e-6 to 3e-6, a wrong operator is far beyond."""

# below these, ONNX Runtime stays: its features do not depend on the batch
GAIN = 1.25
SPARED = 1e-3  # seconds
ROUNDS = 5


class Engine(Protocol):
    """A frozen network: prepared inputs [n, …] to float32 features [n, …]."""

    name: str
    threads: int

    def __call__(self, inputs: npt.NDArray[np.generic]) -> Tensor: ...


class TorchEngine:
    """Eager PyTorch in inference mode, channels-last, on any device; features come back to the CPU.

    Parameters
    ----------
    network
        The module.
    threads
        How many compute.
    device
        Where it runs.

    >>> TorchEngine(nn.Flatten(), threads=1)(np.zeros((2, 3, 4), np.float32)).shape
    torch.Size([2, 12])
    """

    name = "torch"

    def __init__(
        self, network: nn.Module, *, threads: int, device: str | torch.device = "cpu"
    ) -> None:
        network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network = network.eval()
        self.threads = threads
        self.device = torch.device(device)

    def __call__(self, inputs: npt.NDArray[np.generic]) -> Tensor:
        if not inputs.flags.writeable:
            inputs = inputs.copy()  # torch has no read-only tensors
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with torch.no_grad():  # inference tensors could not be learned from
                z: Tensor = self.network(torch.from_numpy(inputs).to(self.device))
            return z.float().cpu().contiguous()
        finally:
            torch.set_num_threads(before)


class OnnxEngine:
    """ONNX Runtime on the CPU. Its idle threads sleep instead of spinning: spinning takes the
    cores from the learning step that follows (measured: twice the time of G + step).

    Parameters
    ----------
    model
        An ONNX file's content.
    threads
        How many compute.

    >>> model = convert_module(nn.Flatten(), torch.zeros(1, 3, 4))
    >>> OnnxEngine(model, threads=1)(np.zeros((2, 3, 4), "f4")).shape
    torch.Size([2, 12])
    """

    name = "onnxruntime"

    def __init__(self, model: bytes, *, threads: int) -> None:
        self.model = model
        self._threads = threads
        self._session = start_session(model, threads)

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "threads": self._threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A session has no copy: it is started again."""
        self.__init__(state["model"], threads=state["threads"])  # type: ignore[misc]

    @property
    def threads(self) -> int:
        return self._threads

    @threads.setter
    def threads(self, n: int) -> None:
        if n != self._threads:
            self._session = start_session(self.model, n)
            self._threads = n

    def __call__(self, inputs: npt.NDArray[np.generic]) -> Tensor:
        (z,) = self._session.run(None, {"input": inputs})
        return torch.from_numpy(z).clone()  # into torch's aligned storage: bits depend on it


def start_session(model: bytes, threads: int) -> Any:
    """A model in ONNX Runtime on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what is wrong is raised, and told once
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # without the second try with the same provider, which it announces on standard output
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"], enable_fallback=0
    )


def start_engine(
    network: nn.Module,
    example: Tensor,
    *,
    engine: str,
    threads: int | None,
    device: str = "cpu",
) -> Engine:
    """The engine asked for; "auto" tries both on the CPU, and is PyTorch on any other device."""
    if engine not in ENGINES:
        raise BadSetting(f"engine {engine!r}: use one of {', '.join(ENGINES)}")
    n = torch.get_num_threads() if threads is None else threads
    if n < 1:
        raise BadSetting(f"threads must be at least 1, not {n}")
    network.eval().requires_grad_(False)
    if device != "cpu":
        if engine == "onnxruntime":
            raise BadSetting(f"onnxruntime runs on the CPU here: use engine='torch' on {device}")
        return TorchEngine(network, threads=n, device=device)
    if engine == "torch":
        return TorchEngine(network, threads=n)
    try:
        return _try_onnx(network, example, threads=n, must=engine == "onnxruntime")
    except Unconvertible as error:
        if engine == "onnxruntime":
            raise BadSetting(f"{error}: use engine='torch' or 'auto'") from error
    except ImportError as error:
        if engine == "onnxruntime":
            raise BadSetting("onnxruntime is not installed: use engine='torch'") from error
    return TorchEngine(network, threads=n)


def _try_onnx(network: nn.Module, example: Tensor, *, threads: int, must: bool) -> Engine:
    """ONNX Runtime, unless PyTorch is clearly faster; refused where the features differ."""
    try:
        model = convert_module(network, example)
    except Unconvertible as unknown:
        try:
            model = export_with_torch(network, example)
        except Unconvertible as error:
            raise Unconvertible(f"{unknown}, and {error}") from error
    onnx = OnnxEngine(model, threads=threads)
    chosen = choose_engine(onnx, lambda: TorchEngine(network, threads=threads), example, model)
    if chosen == "differs":
        raise Unconvertible("a network whose features differ in ONNX Runtime")
    return TorchEngine(network, threads=threads) if chosen == "torch" and not must else onnx


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
