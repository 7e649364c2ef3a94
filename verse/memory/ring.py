"""The latest samples only."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from verse.memory.base import Memory


class Ring(Memory):
    """First in, first out: the memory holds the most recent samples.

    Parameters
    ----------
    capacity, byte_limit, per_class, dtype, seed
        As in ``Memory``.

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
                self.keep(self.order_by_age(), self.allocated)
            return self.length
        place = self.oldest
        self.oldest = (place + 1) % self.limit
        return place

    def order_by_age(self) -> NDArray[np.int64]:
        return np.roll(np.arange(self.length), -self.oldest)

    def _select_survivors(self, n: int) -> NDArray[np.int64]:
        return self.order_by_age()[-n:]  # the latest

    def _rebuild(self) -> None:
        self.oldest = 0  # compacted in order of age

    def state(self) -> dict[str, Tensor]:
        return super().state() | {"oldest": torch.tensor(self.oldest)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        self.oldest = int(state["oldest"])
