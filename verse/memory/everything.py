"""No bound at all: for upper bounds of comparisons, never for a device."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from verse.memory.base import Memory


class Everything(Memory):
    """Every sample, for ever; storage doubles when it is full.

    Parameters
    ----------
    dtype, seed
        As in ``Memory``.

    >>> import torch
    >>> memory = Everything()
    >>> memory.allocate(torch.device("cpu"), z=(1,))
    >>> for t in range(100):
    ...     _ = memory.add(torch.zeros(1), t)
    >>> len(memory)
    100
    """

    name: ClassVar[str] = "everything"

    def __init__(self, *, dtype: str = "float32", seed: int = 0) -> None:
        super().__init__(1, dtype=dtype, seed=seed)

    @property
    def limit(self) -> int:
        """What is allocated: a power of two, which follows from the length alone."""
        return max(64, 1 << self.length.bit_length())

    @property
    def bytes(self) -> int:
        """Bytes of what is held."""
        return self.length * self.item_bytes

    def slot(self, y: int) -> int | None:
        return self.length

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.length = int(state["counters"][0])  # the limit follows from it
        super().load_state(state)
