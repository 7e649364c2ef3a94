"""Where samples lie and how they are read: named fields, one row a sample, uniform draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from verse.kernels.randomness import Random
from verse.network.scratch import scratch
from verse.types import Batch, Refused

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Field:
    """What memory stores of a sample under one name.

    Parameters
    ----------
    shape
        Of one sample's value.
    dtype
        Of its numbers.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32


Fields: TypeAlias = Mapping[str, tuple[int, ...] | Field]
"""Name → shape, or shape and type."""


class Storage:
    """Rows of named fields; which sample lies in which row is decided elsewhere.

    Parameters
    ----------
    dtype
        How features ``z`` are stored; they are always read as float32.
    seed
        Random seed of the draws.

    >>> storage = Storage("float16", seed=0)
    >>> storage.allocate(torch.device("cpu"), z=(3,), doubt=())
    >>> storage.reserve(100)
    >>> sorted(storage.fields), storage.item_bytes
    (['doubt', 'y', 'z'], 18)
    """

    def __init__(self, dtype: str, seed: int) -> None:
        self.dtype = dtype
        self.random = Random(seed, 1)
        self.fields: dict[str, Tensor] = {}
        self.length = 0  # rows that hold a sample; they come first

    def __len__(self) -> int:
        return self.length

    # ---- room -------------------------------------------------------------------------------

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

    @property
    def item_bytes(self) -> int:
        """Bytes of one stored sample with all its fields."""
        return sum(prod(f.shape[1:]) * f.element_size() for f in self.fields.values())

    @property
    def allocated(self) -> int:
        """How many rows there are, filled or not."""
        return self.fields["y"].shape[0]

    def reserve(self, rows: int) -> None:
        """Allocate at least this number of rows."""
        held = self.allocated
        if held < rows:
            for name, field in self.fields.items():
                # not zeroed: what was never written takes no memory, and is never read
                larger = field.new_empty(rows, *field.shape[1:])
                larger[:held] = field
                self.fields[name] = larger

    def widen(self, name: str, width: int) -> None:
        """More columns, zero at first, for a field that follows the head."""
        field = self.fields[name]
        self.fields[name] = field.new_zeros(field.shape[0], width)
        self.fields[name][:, : field.shape[1]] = field

    def keep(self, slots: NDArray[np.int64], rows: int) -> None:
        """Only these samples, in this order, in storage of ``rows`` rows; the others are wiped."""
        index = torch.from_numpy(np.ascontiguousarray(slots))
        for name, field in self.fields.items():
            kept = field.index_select(0, index.to(field.device))
            field.zero_()
            self.fields[name] = field[:rows].clone() if rows < field.shape[0] else field
            self.fields[name][: len(slots)] = kept
        self.length = len(slots)

    # ---- reading ----------------------------------------------------------------------------

    def rows(self, index: Tensor) -> Batch:
        """The samples at these indices, features as float32 (codes as they are)."""
        picked = {name: field.index_select(0, index) for name, field in self.fields.items()}
        z = picked.pop("z")
        return Batch(z.float() if z.is_floating_point() else z, picked.pop("y"), picked)

    def all(self) -> Batch:
        """Everything there is, in slot order."""
        return self.rows(torch.arange(self.length, device=self.fields["y"].device))

    def copy_features(self, index: Tensor, out: Tensor) -> None:
        """Write the features at these indices to the rows of ``out``."""
        field = self.fields["z"]
        if field.dtype == out.dtype:
            torch.index_select(field, 0, index, out=out)
        else:
            out.copy_(field.index_select(0, index))

    def gather(self, slots: NDArray[np.int64], out: NDArray[np.float32]) -> NDArray[np.int64]:
        """Copy the features in these slots to the rows of ``out`` [n, d]; returns their outputs.

        On the processor only; numpy takes half the time of an ``index_select``.
        """
        field = self.fields["z"].flatten(1)
        if field.dtype == torch.float32:
            field.numpy().take(slots, 0, out=out, mode="clip")  # unchecked: they exist
        else:
            out[:] = field[torch.from_numpy(slots)].float().numpy()
        labels: NDArray[np.int64] = self.fields["y"].numpy().take(slots)
        return labels

    def counts(self) -> dict[int, int]:
        """Samples per output."""
        outputs, counts = torch.unique(self.fields["y"][: self.length], return_counts=True)
        return {int(y): int(n) for y, n in zip(outputs, counts, strict=True)}

    def require_storable(self, z: Tensor) -> None:
        """Refuse a value that the memory's type has no room for: stored as infinity it would spoil
        every later step that draws it."""
        stored = self.fields["z"].dtype
        if stored != torch.float32 and not bool(torch.isfinite(z.to(stored)).all()):
            raise Refused(
                f"a value of {float(z.abs().max()):.6g} is too large for a memory of "
                f"{self.dtype}; nothing was learned"
            )

    # ---- drawing, without replacement -------------------------------------------------------

    def draw(self, n: int) -> Tensor:
        """Indices of min(n, len) different samples, uniformly."""
        return torch.from_numpy(self.draw_slots(n)).to(self.fields["y"].device)

    def draw_slots(self, n: int) -> NDArray[np.int64]:
        """The same as an array."""
        return self.random.draw(self.length, n)

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
        self.copy_features(index, rows[1:])
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
        self.copy_features(index, rows)
        labels = self.fields["y"].index_select(0, index)
        k = len(draws[0])
        return tuple(
            Batch(rows[i * k : (i + 1) * k], labels[i * k : (i + 1) * k]) for i in range(times)
        )
