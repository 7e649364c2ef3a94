"""Reservoir sampling."""

from __future__ import annotations

from typing import ClassVar

from verse.memory.base import Memory


class Reservoir(Memory):
    """With a fixed capacity every sample is in memory with the same probability, capacity / seen.

    Algorithm R of J. S. Vitter, "Random sampling with a reservoir", ACM TOMS 11(1), 1985: the t-th
    sample draws j uniformly below t and replaces item j if j < capacity.

    With a budget of N per class the capacity grows by N with every new class. What comes first
    then fills the new room with certainty (the first N frames of the class, where classes come one
    after another), and Vitter's rule holds from there on: probabilities are no longer the same.

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
