"""The base class of all memories: a rule decides which samples to keep, within a budget.

Where samples lie and how they are drawn is in ``storage``, how many fit in ``bounds``.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from verse.memory.budget import Bounds, is_whole
from verse.memory.storage import DTYPES, Field, Storage
from verse.stateful import PerClass
from verse.types import BadSetting, BadState


class Memory(Storage, PerClass):
    """A bounded set of samples. A policy implements only ``slot(y)``: where a sample goes, or None.

    The budget is ``capacity`` samples, ``byte_limit`` bytes, or ``per_class`` samples for every
    class there is (a forgotten one takes its share along); with several, the smallest holds.

    Parameters
    ----------
    capacity
        Samples in all.
    byte_limit
        Bytes in all.
    per_class
        Samples for every class.
    dtype
        How features are stored; they are always drawn as float32.
    seed
        Random seed.
    """

    name: ClassVar[str]
    NEEDS: ClassVar[Mapping[str, int]] = {}  # further fields that ``add`` is given → dimensions

    def __init__(
        self,
        capacity: int | None = None,
        *,
        byte_limit: int | None = None,
        per_class: int | None = None,
        dtype: str = "float32",
        seed: int = 0,
    ) -> None:
        self.bounds = Bounds(capacity, byte_limit, per_class)
        if not is_whole(seed, least=0):
            raise BadSetting(f"seed must be a whole number of at least 0, not {seed!r}")
        if dtype not in DTYPES:
            raise BadSetting(f"memory dtype {dtype!r}: use one of {', '.join(DTYPES)}")
        super().__init__(dtype, seed)
        self.capacity = capacity
        self.byte_limit = byte_limit
        self.per_class = per_class
        self.seed = seed
        self.seen = 0
        self.classes = 0
        self._limit: int | None = None

    def __repr__(self) -> str:
        allowed = f" of at most {self.limit}" if self.fields else ""
        return f"<{type(self).__name__}: {self.length}{allowed} samples, {self.dtype}>"

    # ---- the policy -------------------------------------------------------------------------

    def slot(self, y: int) -> int | None:
        """Where a sample of output ``y`` goes: ``length`` to append, a taken slot, or None."""
        raise NotImplementedError

    def _note_write(self, y: int, slot: int, replaced: int | None) -> None:
        """Bookkeeping after a write; ``replaced`` is the output that was in the slot."""

    def _rebuild(self) -> None:
        """Bookkeeping after the whole content changed (a class was forgotten)."""

    def _select_kept(self, n: int) -> NDArray[np.int64]:
        """Slots of the ``n`` samples that stay when there are fewer classes to hold samples of."""
        return self._select_survivors(n)

    def _select_survivors(self, n: int) -> NDArray[np.int64]:
        """Slots of the ``n`` samples that stay when the budget shrinks."""
        return np.sort(self.random.draw(self.length, n))

    def order_by_age(self) -> NDArray[np.int64]:
        """Slots in the order in which a compacted memory should keep them."""
        return np.arange(self.length)

    # ---- adding -----------------------------------------------------------------------------

    def allocate(self, device: torch.device, /, **fields: tuple[int, ...] | Field) -> None:
        super().allocate(device, **fields)
        self.bounds.require_room(self.item_bytes)
        self._limit = None

    @property
    def limit(self) -> int:
        """How many samples fit in the budget now."""
        if self._limit is None:
            self._limit = self.bounds.samples(self.classes, self.item_bytes)
        return self._limit

    @property
    def bytes(self) -> int:
        """Bytes that the budget allows to be filled; what a comparison reports."""
        return self.limit * self.item_bytes

    def _reserve(self) -> None:
        """Storage for the whole budget at once; only a budget per class ever grows it."""
        rows = self.fields["y"].shape[0]
        if rows < self.limit:
            self.reserve(self.limit if self.per_class is None else max(self.limit, 2 * rows))

    def add(self, z: Tensor, y: int, **extra: Tensor) -> int | None:
        """Offer one sample; returns its slot, or None if the policy did not keep it."""
        self._reserve()
        self.seen += 1
        slot = self.slot(y)
        if slot is not None:
            replaced = int(self.fields["y"][slot]) if slot < self.length else None
            self.fields["z"][slot] = z
            self.fields["y"][slot] = y
            for name, value in extra.items():
                self.fields[name][slot] = value
            self.length = max(self.length, slot + 1)
            self._note_write(y, slot, replaced)
        return slot

    def absorb(self, other: Memory, outputs: Sequence[int]) -> None:
        """Take in the samples of another memory with the same fields, by this memory's rule, in
        the order of their age. ``outputs`` are this memory's for the other's."""
        for slot in other.order_by_age().tolist():
            fields = {name: field[slot] for name, field in other.fields.items()}
            z, y = fields.pop("z"), outputs[int(fields.pop("y"))]
            self.add(z, y, **fields)
        self.seen += other.seen - len(other)

    # ---- other classes, other budget --------------------------------------------------------

    def keep(self, slots: NDArray[np.int64], rows: int) -> None:
        super().keep(slots, rows)
        self._rebuild()

    def widen(self, name: str, width: int) -> None:
        """Under a budget in bytes fewer samples may fit afterwards: the others leave."""
        super().widen(name, width)
        self._limit = None
        if self.length > self.limit:
            self.keep(self._select_survivors(self.limit), self.limit)

    def set_class_count(self, classes: int) -> None:
        """Learn how many classes there are; a budget per class grows or shrinks with them.

        Where it shrinks, what is too much leaves by the policy's rule.
        """
        fewer = classes < self.classes
        self.classes, self._limit = classes, None
        if fewer:
            self._shrink()

    def _shrink(self) -> None:
        """Hold no more than the budget, in storage of at most twice its size."""
        if self.length > self.limit:
            self.keep(self._select_kept(self.limit), self.allocated)
        if self.allocated > 2 * self.limit:
            # content and order stay: how much is stored where is not part of the state
            self.fields = {name: field[: self.limit].clone() for name, field in self.fields.items()}

    def add_class(self, classes: int, row: Tensor) -> None:
        self.set_class_count(classes)

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        changed = self.discard(output) if into is None else self.relabel(output, into)
        self._close_gap(output)
        self.set_class_count(classes)
        return changed

    def discard(self, y: int) -> int:
        """Remove every sample of an output, wiping its storage; returns how many there were."""
        order = self.order_by_age()
        labels = self.fields["y"].cpu().numpy()
        keep = order[labels[order] != y]
        removed = self.length - len(keep)
        self.keep(keep, self.allocated)
        return removed

    def relabel(self, y: int, into: int) -> int:
        """Every sample of one output becomes one of another; returns how many."""
        labels = self.fields["y"][: self.length]
        hit = labels == y
        labels[hit] = into
        order = torch.from_numpy(self.order_by_age()).to(labels.device)
        for field in self.fields.values():
            field[: self.length] = field.index_select(0, order)
        self._rebuild()
        return int(hit.sum())

    def _close_gap(self, output: int) -> None:
        """Outputs behind one that no sample has any more move up."""
        labels = self.fields["y"][: self.length]
        labels[labels > output] -= 1
        self._rebuild()

    # ---- settings and state -----------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """The constructor arguments that rebuild this memory."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @classmethod
    def like(cls, other: Memory) -> Self:
        """A memory of this policy with another one's budget, precision and seed."""
        shared = set(inspect.signature(cls).parameters)
        return cls(**{k: v for k, v in other.settings().items() if k in shared})

    def mark(self) -> Any:
        return self.random.mark(), self.classes

    def undo(self, mark: Any) -> None:
        generator, self.classes = mark
        self.random.undo(generator)
        self._limit = None

    def state(self) -> dict[str, Tensor]:
        """Everything as tensors: the filled part of each field, counters, the generator."""
        state = {f"field.{name}": f[: self.length] for name, f in self.fields.items()}
        state["counters"] = torch.tensor([self.length, self.seen, self.classes])
        return state | {"random": self.random.state()[""]}

    def load_state(self, state: dict[str, Tensor]) -> None:
        length, seen, classes = (int(v) for v in state["counters"])
        if any(len(state[f"field.{name}"]) != length for name in self.fields):
            raise BadState("the saved memory is damaged: it does not hold as many as it says")
        for name, field in self.fields.items():
            # a field that follows the head may have been widened since it was allocated
            shape = field.shape[1:] if name == "z" else state[f"field.{name}"].shape[1:]
            self.fields[name] = field.new_zeros(0, *shape)
        self.classes, self._limit = classes, None
        if length > self.limit:
            raise BadState(f"the saved memory holds {length} samples, the budget is {self.limit}")
        self.length, self.seen = length, seen
        self._reserve()
        for name, field in self.fields.items():
            field[:length] = state[f"field.{name}"]
        self.random.load_state({"": state["random"]})
        self._rebuild()

    def follow(self, other: Memory) -> None:
        self.load_state(other.state())
