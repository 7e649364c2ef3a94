"""Reservoir sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from verse.memory.base import Memory


class Reservoir(Memory):
    """With a fixed capacity every sample is in memory with the same probability, capacity / seen.

    Algorithm R of J. S. Vitter, "Random sampling with a reservoir", ACM TOMS 11(1), 1985: the t-th
    sample draws j uniformly below t and replaces item j if j < capacity.

    With a budget of N per class the capacity grows by N with every new class. What comes first
    then fills the new room with certainty (the first N frames of the class, where classes come one
    after another), and Vitter's rule holds from there on: probabilities are no longer the same.

    Parameters
    ----------
    capacity, byte_limit, per_class, dtype, seed
        As in ``Memory``.

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

    def absorb(self, other: Memory, outputs: Sequence[int]) -> None:
        """Each sample that either memory has seen stays with about the same probability: how many
        come from which is drawn as from an urn of all samples seen."""
        seen, room = self.seen + other.seen, min(self.limit, len(self) + len(other))
        theirs = int(self.random.numpy.hypergeometric(other.seen, self.seen, room)) if room else 0
        theirs = min(len(other), max(theirs, room - len(self)))
        self.keep(self._select_survivors(room - theirs), self.allocated)
        for slot in self.random.draw(len(other), theirs).tolist():
            fields = {name: field[slot] for name, field in other.fields.items()}
            z, y = fields.pop("z"), outputs[int(fields.pop("y"))]
            self.add(z, y, **fields)
        self.seen = seen
