"""Reservoir sampling."""

from __future__ import annotations

from typing import ClassVar

from verse.memory.base import Memory


class Reservoir(Memory):
    """Every sample of the stream is in memory with the same probability, capacity / seen.

    Algorithm R of J. S. Vitter, "Random sampling with a reservoir", ACM TOMS 11(1), 1985: the t-th
    sample draws j uniformly below t and replaces item j if j < capacity.

    >>> import torch
    >>> memory = Reservoir(2)
    >>> memory.allocate(torch.device("cpu"), z=(3,))
    >>> for t in range(10):
    ...     _ = memory.add(torch.zeros(3), t)
    >>> len(memory), memory.seen
    (2, 10)
    """

    name: ClassVar[str] = "reservoir"

    def slot(self, y: int) -> int | None:
        if self.length < self.limit:
            return self.length
        place = self.random.below(self.seen)
        return place if place < self.limit else None
