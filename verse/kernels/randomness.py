"""A random generator whose state is a tensor, so that it can be saved, compared and undone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from verse.stateful import Stateful
from verse.types import BadState

_STATE_BYTES = 16 + 16 + 4 + 4


class Random(Stateful):
    """NumPy's PCG64: drawing 16 of 100,000 without replacement takes hundredths of a millisecond.

    >>> random = Random(0)
    >>> saved = random.state()
    >>> first = random.draw(10, 3)
    >>> random.load_state(saved)
    >>> bool((random.draw(10, 3) == first).all())
    True
    """

    def __init__(self, *seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))

    def draw(self, n: int, k: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """min(k, n) different indices below n, uniformly."""
        return self._generator.choice(n, size=min(k, n), replace=False, shuffle=False)

    def below(self, n: int) -> int:
        """One integer of 0 … n−1."""
        return int(self._generator.integers(n))

    def uniform(self) -> float:
        return float(self._generator.random())

    def uniform_tensor(self, shape: tuple[int, ...], low: float, high: float) -> Tensor:
        return torch.from_numpy(self._generator.uniform(low, high, shape).astype(np.float32))

    def normal_tensor(self, shape: tuple[int, ...]) -> Tensor:
        return torch.from_numpy(self._generator.standard_normal(shape, dtype=np.float32))

    @property
    def numpy(self) -> np.random.Generator:
        """The generator itself, for distributions not offered above."""
        return self._generator

    def mark(self) -> dict[str, Any]:
        return dict(self._generator.bit_generator.state)

    def undo(self, mark: dict[str, Any]) -> None:
        self._generator.bit_generator.state = mark

    def state(self) -> dict[str, Tensor]:
        now = self._generator.bit_generator.state
        raw = (
            now["state"]["state"].to_bytes(16, "little")
            + now["state"]["inc"].to_bytes(16, "little")
            + int(now["has_uint32"]).to_bytes(4, "little")
            + int(now["uinteger"]).to_bytes(4, "little")
        )
        return {"": torch.frombuffer(bytearray(raw), dtype=torch.uint8)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        raw = bytes(state[""].cpu().numpy().tobytes())
        if len(raw) != _STATE_BYTES:
            raise BadState("the saved random generator has the wrong size")
        self._generator.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {
                "state": int.from_bytes(raw[:16], "little"),
                "inc": int.from_bytes(raw[16:32], "little"),
            },
            "has_uint32": int.from_bytes(raw[32:36], "little"),
            "uinteger": int.from_bytes(raw[36:40], "little"),
        }

    def follow(self, other: Random) -> None:
        """Nothing: no answer depends on what is drawn later."""
