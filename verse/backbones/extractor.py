"""G as everyone uses it: images in, features out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from verse.backbones.engine import OnnxEngine, start_engine
from verse.backbones.preprocess import Preprocessor
from verse.types import BadSetting


class FrozenNetwork:
    """A frozen network behind its preprocessing, run by the fastest engine that can.

    ``network`` is the module itself, ``prepare`` what makes its input of an image, and ``example``
    a batch of one such input: for exporting.

    Parameters
    ----------
    network
        The module.
    preprocess
        From an image to one input of the network.
    example
        An image, to measure and export with.
    engine
        "auto", "torch" or "onnxruntime".
    threads
        Of the engine; None: as many as are fastest.
    device
        Where it runs.

    >>> G = FrozenNetwork(nn.ReLU(), lambda x: np.asarray(x, np.float32), example=[0, 0])
    >>> G([[1, -2], [-3, 4]])
    tensor([[1., 0.],
            [0., 4.]])
    """

    def __init__(
        self,
        network: nn.Module,
        preprocess: Preprocessor,
        *,
        example: object,
        engine: str = "auto",
        threads: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.network = network
        self.prepare = preprocess
        first = self.example = np.stack([self.preprocess(example)])
        self._engine = start_engine(
            network, torch.from_numpy(first), engine=engine, threads=threads, device=device
        )
        self.z_shape: tuple[int, ...] = tuple(self.run(first).shape[1:])

    def __repr__(self) -> str:
        """Without the network itself."""
        shape = "×".join(map(str, self.z_shape))
        return f"<{type(self).__name__}: features {shape}, run by {self._engine.name}>"

    @property
    def engine(self) -> str:
        """What runs the network."""
        return self._engine.name

    @property
    def model(self) -> bytes | None:
        """The network as an ONNX model; None where PyTorch runs it."""
        return self._engine.model if isinstance(self._engine, OnnxEngine) else None

    @property
    def threads(self) -> int:
        """Threads used for one call; assign to change it."""
        return self._engine.threads

    @threads.setter
    def threads(self, n: int) -> None:
        if n < 1:
            raise BadSetting(f"threads must be at least 1, not {n}")
        self._engine.threads = n

    def preprocess(self, image: object) -> npt.NDArray[np.generic]:
        """One image in any form → the network's input, without batch dimension."""
        return self.prepare(image)

    def run(self, inputs: npt.NDArray[np.generic]) -> Tensor:
        """Prepared inputs [n, …] → float32 z [n, *z_shape]."""
        return self._engine(np.ascontiguousarray(inputs))

    def __call__(self, images: Sequence[object]) -> Tensor:
        if len(images) == 0:
            return torch.empty(0, *self.z_shape)
        return self.run(np.stack([self.preprocess(image) for image in images]))
