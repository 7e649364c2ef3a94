"""What every memory shares: preallocated named fields, a budget, uniform draws, exact state."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor

from verse.kernels.randomness import Random
from verse.network.scratch import scratch
from verse.stateful import PerClass
from verse.types import BadSetting, BadState, Batch, Refused

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def _whole(value: object, *, least: int) -> bool:
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return int(value) >= least


@dataclass(frozen=True, slots=True)
class Field:
    """What memory stores of a sample under one name."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32


Fields: TypeAlias = Mapping[str, tuple[int, ...] | Field]
"""Name → shape, or shape and type."""


class Memory(PerClass):
    """A bounded set of samples. A policy implements only ``slot(y)``: where a sample goes, or None.

    The budget is ``capacity`` samples, ``byte_limit`` bytes, or ``per_class`` samples for every
    class there is (a forgotten one takes its share along); with several, the smallest holds.
    ``dtype`` is how features are stored; they are always drawn as float32.
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
        budget = {"capacity": capacity, "byte_limit": byte_limit, "per_class": per_class}
        if all(value is None for value in budget.values()):
            raise BadSetting("a memory needs a budget: capacity, byte_limit or per_class")
        for name, value in budget.items():
            if value is not None and not _whole(value, least=1):
                raise BadSetting(f"{name} must be a whole number of at least 1, not {value!r}")
        if not _whole(seed, least=0):
            raise BadSetting(f"seed must be a whole number of at least 0, not {seed!r}")
        if dtype not in DTYPES:
            raise BadSetting(f"memory dtype {dtype!r}: use one of {', '.join(DTYPES)}")
        self.capacity = capacity
        self.byte_limit = byte_limit
        self.per_class = per_class
        self.dtype = dtype
        self.seed = seed
        self.random = Random(seed, 1)
        self.fields: dict[str, Tensor] = {}
        self.length = 0
        self.seen = 0
        self.classes = 0
        self._limit: int | None = None

    # ---- the policy -------------------------------------------------------------------------

    def slot(self, y: int) -> int | None:
        """Where a sample of output ``y`` goes: ``length`` to append, a taken slot, or None."""
        raise NotImplementedError

    def _note_write(self, y: int, slot: int, replaced: int | None) -> None:
        """Bookkeeping after a write; ``replaced`` is the output that was in the slot."""

    def _rebuild(self) -> None:
        """Bookkeeping after the whole content changed (a class was forgotten)."""

    def _select_kept(self, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Slots of the ``n`` samples that stay when there are fewer classes to hold samples of."""
        return self._survivors(n)

    def _age_order(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Slots in the order in which a compacted memory should keep them."""
        return np.arange(self.length)

    # ---- fields -----------------------------------------------------------------------------

    def allocate(self, device: torch.device, /, **fields: tuple[int, ...] | Field) -> None:
        """Declare the fields; ``z`` is required, ``y`` is always there.

        A plain shape is one of floating-point values, for ``z`` of the memory's ``dtype``.
        """
        plain = {"z": DTYPES[self.dtype]}
        self.fields = {}
        for name, field in fields.items():
            if not isinstance(field, Field):
                field = Field(field, plain.get(name, torch.float32))
            self.fields[name] = torch.zeros(0, *field.shape, dtype=field.dtype, device=device)
        self.fields["y"] = torch.zeros(0, dtype=torch.int64, device=device)
        if self.byte_limit is not None and self.byte_limit < self.item_bytes:
            raise BadSetting(
                f"byte_limit {self.byte_limit} is less than one sample ({self.item_bytes} bytes)"
            )
        self._limit = None

    @property
    def item_bytes(self) -> int:
        """Bytes of one stored sample with all its fields."""
        return sum(prod(f.shape[1:]) * f.element_size() for f in self.fields.values())

    @property
    def limit(self) -> int:
        """How many samples fit in the budget now."""
        if self._limit is None:
            bounds = [self.capacity] if self.capacity is not None else []
            if self.byte_limit is not None:
                # at least one: a field that follows the head may outgrow a budget of one sample
                bounds.append(max(1, self.byte_limit // self.item_bytes))
            if self.per_class is not None:
                bounds.append(self.per_class * max(1, self.classes))
            self._limit = min(bounds)
        return self._limit

    @property
    def bytes(self) -> int:
        """Bytes that the budget allows to be filled; what a comparison reports."""
        return self.limit * self.item_bytes

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        allowed = f" of at most {self.limit}" if self.fields else ""
        return f"<{type(self).__name__}: {self.length}{allowed} samples, {self.dtype}>"

    def set_class_count(self, classes: int) -> None:
        """Learn how many classes there are; a budget per class grows or shrinks with them.

        Where it shrinks, what is too much leaves by the policy's rule.
        """
        fewer = classes < self.classes
        self.classes, self._limit = classes, None
        if fewer:
            self._shrink()

    def add_class(self, classes: int, row: Tensor) -> None:
        self.set_class_count(classes)

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        changed = self.discard(output) if into is None else self.relabel(output, into)
        self._close_gap(output)
        self.set_class_count(classes)
        return changed

    def _close_gap(self, output: int) -> None:
        """Outputs behind one that no sample has any more move up."""
        labels = self.fields["y"][: self.length]
        labels[labels > output] -= 1
        self._rebuild()

    def _shrink(self) -> None:
        """Hold no more than the budget, in storage of at most twice its size."""
        if self.length > self.limit:
            self._keep(self._select_kept(self.limit), self.fields["y"].shape[0])
        if self.fields["y"].shape[0] > 2 * self.limit:
            # content and order stay: how much is stored where is not part of the state
            self.fields = {name: field[: self.limit].clone() for name, field in self.fields.items()}

    def _reserve(self) -> None:
        """Storage for the whole budget at once; only a budget per class ever grows it."""
        rows = self.fields["y"].shape[0]
        if rows < self.limit:
            wanted = self.limit if self.per_class is None else max(self.limit, 2 * rows)
            for name, field in self.fields.items():
                # not zeroed: what was never written takes no memory, and is never read
                larger = field.new_empty(wanted, *field.shape[1:])
                larger[:rows] = field
                self.fields[name] = larger

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
        for slot in other._age_order().tolist():
            fields = {name: field[slot] for name, field in other.fields.items()}
            z, y = fields.pop("z"), outputs[int(fields.pop("y"))]
            self.add(z, y, **fields)
        self.seen += other.seen - len(other)

    def require_storable(self, z: Tensor) -> None:
        """Refuse a value that the memory's type has no room for: stored as infinity it would spoil
        every later step that draws it."""
        stored = self.fields["z"].dtype
        if stored != torch.float32 and not bool(torch.isfinite(z.to(stored)).all()):
            raise Refused(
                f"a value of {float(z.abs().max()):.6g} is too large for a memory of "
                f"{self.dtype}; nothing was learned"
            )

    def draw(self, n: int) -> Tensor:
        """Indices of min(n, len) different samples, uniformly."""
        return torch.from_numpy(self.draw_slots(n)).to(self.fields["y"].device)

    def draw_slots(self, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The same as an array."""
        return self.random.draw(self.length, n)

    def gather(
        self, slots: np.ndarray[Any, np.dtype[np.int64]], out: Tensor
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Copy the features in these slots to the rows of ``out`` [n, d]; returns their outputs.

        On the processor only; numpy takes half the time of an ``index_select``.
        """
        field = self.fields["z"].flatten(1)
        if field.dtype == torch.float32:
            field.numpy().take(slots, 0, out=out.numpy(), mode="clip")  # unchecked: they exist
        else:
            out.copy_(field[torch.from_numpy(slots)])
        labels: np.ndarray[Any, np.dtype[np.int64]] = self.fields["y"].numpy()[slots]
        return labels

    def rows(self, index: Tensor) -> Batch:
        """The samples at these indices, features as float32 (codes as they are)."""
        picked = {name: field.index_select(0, index) for name, field in self.fields.items()}
        z = picked.pop("z")
        return Batch(z.float() if z.is_floating_point() else z, picked.pop("y"), picked)

    def sample(self, n: int) -> Batch:
        """min(n, len) different samples, uniformly."""
        return self.rows(self.draw(n))

    def sample_with(self, z: Tensor, y: int, n: int) -> Batch:
        """The sample (z [1, …], y) and behind it min(n, len) others, uniformly, by one gather.

        Its storage is used again by the next call.
        """
        index = self.draw(n)
        rows = scratch.take("sample_with", (1 + len(index), *z.shape[1:]), z.device)
        rows[:1] = z
        self._gather(index, rows[1:])
        labels = self.fields["y"].new_empty(1 + len(index))
        labels[0] = y
        torch.index_select(self.fields["y"], 0, index, out=labels[1:])
        return Batch(rows, labels)

    def samples(self, n: int, times: int) -> tuple[Batch, ...]:
        """What ``times`` calls of ``sample`` give, by one gather: the batches lie one behind
        another. Their storage is used again by the next call."""
        draws = [self.random.draw(self.length, n) for _ in range(times)]
        index = torch.from_numpy(np.concatenate(draws)).to(self.fields["y"].device)
        field = self.fields["z"]
        rows = scratch.take("samples", (len(index), *field.shape[1:]), field.device)
        self._gather(index, rows)
        labels = self.fields["y"].index_select(0, index)
        k = len(draws[0])
        return tuple(
            Batch(rows[i * k : (i + 1) * k], labels[i * k : (i + 1) * k]) for i in range(times)
        )

    def _gather(self, index: Tensor, out: Tensor) -> None:
        field = self.fields["z"]
        if field.dtype == out.dtype:
            torch.index_select(field, 0, index, out=out)
        else:
            out.copy_(field.index_select(0, index))

    def all(self) -> Batch:
        """Everything in memory, in slot order."""
        return self.rows(torch.arange(self.length, device=self.fields["y"].device))

    def counts(self) -> dict[int, int]:
        """Samples per output."""
        outputs, counts = torch.unique(self.fields["y"][: self.length], return_counts=True)
        return {int(y): int(n) for y, n in zip(outputs, counts, strict=True)}

    def discard(self, y: int) -> int:
        """Remove every sample of an output, wiping its storage; returns how many there were."""
        order = self._age_order()
        labels = self.fields["y"].cpu().numpy()
        keep = order[labels[order] != y]
        removed = self.length - len(keep)
        self._keep(keep, self.fields["y"].shape[0])
        return removed

    def widen(self, name: str, width: int) -> None:
        """More columns, zero at first, for a field that follows the head.

        Under a budget in bytes fewer samples may fit afterwards: the others leave.
        """
        field = self.fields[name]
        self.fields[name] = field.new_zeros(field.shape[0], width)
        self.fields[name][:, : field.shape[1]] = field
        self._limit = None
        if self.length > self.limit:
            self._keep(self._survivors(self.limit), self.limit)

    def _survivors(self, n: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Slots of the ``n`` samples that stay when the budget shrinks."""
        return np.sort(self.random.draw(self.length, n))

    def _keep(self, slots: np.ndarray[Any, np.dtype[np.int64]], rows: int) -> None:
        """Only these samples, in this order, in storage of ``rows`` samples."""
        index = torch.from_numpy(np.ascontiguousarray(slots))
        for name, field in self.fields.items():
            kept = field.index_select(0, index.to(field.device))
            field.zero_()
            self.fields[name] = field[:rows].clone() if rows < field.shape[0] else field
            self.fields[name][: len(slots)] = kept
        self.length = len(slots)
        self._rebuild()

    def relabel(self, y: int, into: int) -> int:
        """Every sample of one output becomes one of another; returns how many."""
        labels = self.fields["y"][: self.length]
        hit = labels == y
        labels[hit] = into
        order = torch.from_numpy(self._age_order()).to(labels.device)
        for field in self.fields.values():
            field[: self.length] = field.index_select(0, order)
        self._rebuild()
        return int(hit.sum())

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
