"""Every class holds about the same number of samples."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from verse.kernels.randomness import Random
from verse.memory.base import Memory
from verse.types import BadState


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


class ByClass:
    """Which slots each class holds and which classes are largest, in constant time: slots per class
    and classes per size, as lists with swap-removal.

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
