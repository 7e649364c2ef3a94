"""Every class holds about the same number of samples."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from verse.memory.base import Memory
from verse.memory.by_class import ByClass


class ClassBalanced(Memory):
    """A full memory makes room by dropping a random sample of the largest class.

    The new sample always enters. Ties between largest classes are broken at random.

    Parameters
    ----------
    capacity, byte_limit, per_class, dtype, seed
        As in ``Memory``.

    >>> import torch
    >>> memory = ClassBalanced(4)
    >>> memory.allocate(torch.device("cpu"), z=(1,))
    >>> for y in [0, 0, 0, 0, 0, 1, 1]:
    ...     _ = memory.add(torch.zeros(1), y)
    >>> memory.counts()
    {0: 2, 1: 2}
    """

    name: ClassVar[str] = "class-balanced"

    def __init__(
        self,
        capacity: int | None = None,
        *,
        byte_limit: int | None = None,
        per_class: int | None = None,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        super().__init__(
            capacity, byte_limit=byte_limit, per_class=per_class, dtype=dtype, seed=seed
        )
        self.index = ByClass()

    def slot(self, y: int) -> int | None:
        return self.length if self.length < self.limit else self._pick_victim()

    def _pick_victim(self) -> int:
        """The slot that a full memory gives up."""
        return self.index.any_slot(self.index.largest(self.random), self.random)

    def _select_kept(self, n: int) -> NDArray[np.int64]:
        kept = set(range(self.length))
        while len(kept) > n:
            kept.remove(self._drop())
        return np.array(sorted(kept), np.int64)

    def _drop(self) -> int:
        """Take one sample out of the index by the memory's rule; returns its slot."""
        slot = self._pick_victim()
        self.index.remove(int(self.fields["y"][slot]), slot)
        return slot

    def _note_write(self, y: int, slot: int, replaced: int | None) -> None:
        if replaced is not None:
            self.index.remove(replaced, slot)
        self.index.put(y, slot)

    def _rebuild(self) -> None:
        self.index = ByClass()
        for slot, y in enumerate(self.fields["y"][: self.length].tolist()):
            self.index.put(y, slot)

    def state(self) -> dict[str, Tensor]:
        return super().state() | {f"index.{k}": v for k, v in self.index.state().items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        self.index.load_state({k: state[f"index.{k}"] for k in ("classes", "sizes", "slots")})

    def counts(self) -> dict[int, int]:
        return {y: len(s) for y, s in sorted(self.index.slots.items()) if s}
