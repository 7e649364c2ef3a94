"""The latest samples only."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from verse.memory.base import Memory


class Ring(Memory):
    """First in, first out: the memory holds the most recent samples.

    >>> memory = Ring(2)
    >>> memory.allocate(torch.device("cpu"), z=(1,))
    >>> for t in range(5):
    ...     _ = memory.add(torch.zeros(1), t)
    >>> sorted(memory.all().y.tolist())
    [3, 4]
    """

    name: ClassVar[str] = "fifo"
    oldest: int = 0

    def slot(self, y: int) -> int | None:
        if self.length < self.limit:
            if self.oldest:  # the budget grew: the new place comes after the latest, not between
                self._keep(self._age_order(), self.fields["y"].shape[0])
            return self.length
        place = self.oldest
        self.oldest = (place + 1) % self.limit
        return place

    def _age_order(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.roll(np.arange(self.length), -self.oldest)

    def _survivors(self, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return self._age_order()[-n:]  # the latest

    def _rebuild(self) -> None:
        self.oldest = 0  # compacted in order of age

    def state(self) -> dict[str, Tensor]:
        return super().state() | {"oldest": torch.tensor(self.oldest)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        self.oldest = int(state["oldest"])
