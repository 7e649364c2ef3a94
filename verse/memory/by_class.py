"""Which slots each class holds and which classes are largest, every question in constant time."""

from __future__ import annotations

import torch
from torch import Tensor

from verse.kernels.randomness import Random
from verse.types import BadState


class ByClass:
    """Slots per class, and classes per size, as lists with swap-removal.

    >>> index = ByClass()
    >>> for slot, y in enumerate([0, 1, 1]):
    ...     index.put(y, slot)
    >>> index.largest(Random(0))
    1
    """

    def __init__(self) -> None:
        self.slots: dict[int, list[int]] = {}  # class → its slots
        self.place: dict[int, int] = {}  # slot → position in its class's list
        self.levels: list[list[int]] = [[]]  # size → classes of that size
        self.rank: dict[int, int] = {}  # class → position in its level
        self.top = 0

    def put(self, y: int, slot: int) -> None:
        members = self.slots.setdefault(y, [])
        self._leave_level(y, len(members))
        self.place[slot] = len(members)
        members.append(slot)
        self._enter_level(y, len(members))

    def remove(self, y: int, slot: int) -> None:
        members = self.slots[y]
        self._leave_level(y, len(members))
        last = members[-1]
        members[self.place[slot]] = last
        self.place[last] = self.place[slot]
        members.pop()
        del self.place[slot]
        self._enter_level(y, len(members))

    def size(self, y: int) -> int:
        return len(self.slots.get(y, ()))

    def largest(self, random: Random) -> int:
        """A class of the largest size, ties broken at random."""
        classes = self.levels[self.top]
        return classes[random.below(len(classes))]

    def any_slot(self, y: int, random: Random) -> int:
        members = self.slots[y]
        return members[random.below(len(members))]

    def _leave_level(self, y: int, size: int) -> None:
        if y in self.rank:
            level = self.levels[size]
            last = level[-1]
            level[self.rank[y]] = last
            self.rank[last] = self.rank[y]
            level.pop()
            del self.rank[y]

    def _enter_level(self, y: int, size: int) -> None:
        if size == len(self.levels):
            self.levels.append([])
        self.rank[y] = len(self.levels[size])
        self.levels[size].append(y)
        # sizes change by one, so the top moves by at most one
        if size > self.top:
            self.top = size
        elif not self.levels[self.top]:
            self.top = size

    # The order inside the lists decides which item a random number picks, so it is part of the
    # state: classes level by level, and the slots of each.

    def state(self) -> dict[str, Tensor]:
        classes = [y for level in self.levels for y in level]
        return {
            "classes": torch.tensor(classes, dtype=torch.int64),
            "sizes": torch.tensor([len(self.slots[y]) for y in classes], dtype=torch.int64),
            "slots": torch.tensor([s for y in classes for s in self.slots[y]], dtype=torch.int64),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.__init__()  # type: ignore[misc]
        slots, sizes = iter(state["slots"].tolist()), state["sizes"].tolist()
        if sum(sizes) != len(state["slots"]) or min(sizes, default=0) < 0:
            raise BadState("the saved memory is damaged: its slots and classes do not fit")
        for y, size in zip(state["classes"].tolist(), sizes, strict=True):
            members = [next(slots) for _ in range(size)]
            self.slots[y] = members
            self.place.update({slot: position for position, slot in enumerate(members)})
            while len(self.levels) <= size:
                self.levels.append([])
            self.rank[y] = len(self.levels[size])
            self.levels[size].append(y)
            self.top = max(self.top, size)
