"""What runs G: ONNX Runtime where the network can be written as ONNX, else PyTorch itself.

Does the feature of an image depend on its batch? Measured on x86 with both backbones, alone
against a batch of 33, one against two threads: ONNX Runtime gives the same bits; eager PyTorch can
differ by 2e-6 of the largest value, and the two engines differ by 1e-6 to 3e-6 of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from verse.backbones.onnx_graph import convert
from verse.backbones.onnx_layers import Unconvertible
from verse.types import BadSetting

ENGINES = ("auto", "onnxruntime", "torch")


class Engine(Protocol):
    """A frozen network: prepared inputs [n, …] to float32 features [n, …]."""

    name: str
    threads: int

    def __call__(self, inputs: npt.NDArray[np.generic]) -> Tensor: ...


class TorchEngine:
    """Eager PyTorch in inference mode, channels-last.

    >>> TorchEngine(nn.Flatten(), threads=1)(np.zeros((2, 3, 4), np.float32)).shape
    torch.Size([2, 12])
    """

    name = "torch"

    def __init__(self, network: nn.Module, *, threads: int) -> None:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.network = network.eval()
        self.threads = threads

    def __call__(self, inputs: npt.NDArray[np.generic]) -> Tensor:
        if not inputs.flags.writeable:
            inputs = inputs.copy()  # torch has no read-only tensors
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with torch.no_grad():  # inference tensors could not be learned from
                z: Tensor = self.network(torch.from_numpy(inputs))
            return z.contiguous()
        finally:
            torch.set_num_threads(before)


class OnnxEngine:
    """ONNX Runtime on the CPU. Its idle threads sleep instead of spinning: spinning takes the
    cores from the learning step that follows (measured: twice the time of G + step).

    >>> OnnxEngine(nn.Flatten(), torch.zeros(1, 3, 4), threads=1)(np.zeros((2, 3, 4), "f4")).shape
    torch.Size([2, 12])
    """

    name = "onnxruntime"

    def __init__(self, network: nn.Module, example: Tensor, *, threads: int) -> None:
        self._network, self._example = network, example
        self._threads = threads
        self._session = _session(convert(network, example), threads)

    def __getstate__(self) -> dict[str, Any]:
        return {"network": self._network, "example": self._example, "threads": self._threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A session has no copy: it is started again."""
        self.__init__(state["network"], state["example"], threads=state["threads"])  # type: ignore[misc]

    @property
    def threads(self) -> int:
        return self._threads

    @threads.setter
    def threads(self, n: int) -> None:
        if n != self._threads:
            self._session = _session(convert(self._network, self._example), n)
            self._threads = n

    def __call__(self, inputs: npt.NDArray[np.generic]) -> Tensor:
        (z,) = self._session.run(None, {"input": inputs})
        return torch.from_numpy(z).clone()  # into torch's aligned storage: bits depend on it


def _session(model: bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def start(network: nn.Module, example: Tensor, *, engine: str, threads: int | None) -> Engine:
    """The engine asked for; "auto" prefers ONNX Runtime and falls back to PyTorch."""
    if engine not in ENGINES:
        raise BadSetting(f"engine {engine!r}: use one of {', '.join(ENGINES)}")
    n = torch.get_num_threads() if threads is None else threads
    if n < 1:
        raise BadSetting(f"threads must be at least 1, not {n}")
    network.eval().requires_grad_(False)
    if engine != "torch":
        try:
            return OnnxEngine(network, example, threads=n)
        except Unconvertible as error:
            if engine == "onnxruntime":
                raise BadSetting(f"{error}: use engine='torch' or 'auto'") from error
        except ImportError as error:
            if engine == "onnxruntime":
                raise BadSetting("onnxruntime is not installed: use engine='torch'") from error
    return TorchEngine(network, threads=n)
