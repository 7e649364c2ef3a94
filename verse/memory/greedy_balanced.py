"""The greedy balanced sampler of GDumb."""

from __future__ import annotations

from typing import ClassVar

from verse.memory.class_balanced import ClassBalanced


class GreedyBalanced(ClassBalanced):
    """Once full, accept a sample only while its class holds less than capacity / classes.

    A. Prabhu, P. Torr, P. Dokania, "GDumb: a simple approach that questions our progress in
    continual learning", ECCV 2020. Room is made by dropping a random sample of the largest class.

    Parameters
    ----------
    capacity, byte_limit, per_class, dtype, seed
        As in ``Memory``.

    >>> import torch
    >>> memory = GreedyBalanced(4)
    >>> memory.allocate(torch.device("cpu"), z=(1,))
    >>> [memory.add(torch.zeros(1), y) for y in [0, 0, 0, 0, 0]]
    [0, 1, 2, 3, None]
    """

    name: ClassVar[str] = "greedy-balanced"

    def slot(self, y: int) -> int | None:
        if self.length < self.limit:
            return self.length
        held = sum(1 for members in self.index.slots.values() if members)
        if self.index.size(y) and self.index.size(y) >= self.limit / held:
            return None
        return self._pick_victim()
