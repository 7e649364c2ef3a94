"""Prototypes with counts: a full memory merges the two closest of a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from verse.memory.class_balanced import ClassBalanced
from verse.memory.storage import Field, Fields

LARGEST_COUNT = torch.iinfo(torch.int32).max
NOBODY = torch.finfo(torch.float32).max  # the gap of a prototype that is alone in its class


@dataclass(frozen=True, slots=True)
class Write:
    """A prototype as it will be: its slot, its mean, how many samples it stands for."""

    slot: int
    z: Tensor
    count: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What adding one sample will change: where it goes, and what was merged to make room."""

    new: Write
    merged: Write | None = None


class Prototypes(ClassBalanced):
    """Every item is the mean of ``count`` samples of one class.

    Room is made by merging the two closest prototypes (Euclidean distance) of the largest class,
    or of the sample's own class where the budget is one per class::

        z ← (n_a z_a + n_b z_b) / (n_a + n_b),   n ← n_a + n_b

    Each prototype keeps its nearest neighbour, so a change costs a few rows of distances, never
    all pairs. Where every class is down to one prototype, a sample joins that of its class, and a
    new class takes the place of another at random.

    Parameters
    ----------
    capacity, byte_limit, per_class, dtype, seed
        As in ``Memory``.

    >>> memory = Prototypes(2)
    >>> memory.allocate(torch.device("cpu"), z=(1,))
    >>> for value in (0.0, 1.0, 8.0):
    ...     _ = memory.add(torch.tensor([value]), 0)
    >>> sorted(memory.all().z.view(-1).tolist())
    [0.5, 8.0]
    """

    name: ClassVar[str] = "prototypes"
    _relinks: bool = True

    def allocate(self, device: torch.device, /, **fields: tuple[int, ...] | Field) -> None:
        """Also allocates: counts, and the slot and squared distance of the nearest."""
        own: Fields = {"count": Field((), torch.int32), "gap": (), "near": Field((), torch.int64)}
        super().allocate(device, **own, **fields)

    # ---- adding -----------------------------------------------------------------------------

    def plan(self, z: Tensor, y: int) -> Plan:
        """What ``add`` would do; changes only the random generator (ties of largest classes)."""
        self._reserve()
        own = self.index.slots.get(y, [])
        if self.per_class is not None and len(own) >= self.per_class:
            crowded = y
        elif self.length < self.limit:
            return Plan(Write(self.length, z, 1))
        else:
            crowded = self.index.largest(self.random)
        if self.index.size(crowded) > 1:
            a, b = self._closest(crowded)
            return Plan(Write(b, z, 1), self._mean(a, self.fields["z"][b], self._count(b)))
        if own:
            return Plan(self._mean(own[0], z, 1))
        return Plan(Write(self.index.any_slot(crowded, self.random), z, 1))

    def carry_out(self, plan: Plan, y: int) -> int:
        """Do what was planned; returns the slot of the new sample."""
        self.seen += 1
        slot, merged = plan.new.slot, plan.merged
        before = int(self.fields["y"][slot]) if slot < self.length else None
        for write in (plan.new, merged):
            if write is not None:
                self.fields["z"][write.slot] = write.z
                self.fields["count"][write.slot] = write.count
        self.fields["y"][slot] = y
        self.length = max(self.length, slot + 1)
        if before != y:
            self._note_write(y, slot, before)
        changed = [slot] if merged is None else [slot, merged.slot]
        for output in {y} if before is None else {y, before}:
            self._link(output, changed)
        return slot

    def _drop(self) -> int:
        crowded = self.index.largest(self.random)
        if self.index.size(crowded) < 2:
            return super()._drop()
        a, b = self._closest(crowded)
        joined = self._mean(a, self.fields["z"][b], self._count(b))
        self.fields["z"][a], self.fields["count"][a] = joined.z, joined.count
        self.index.remove(crowded, b)
        self._link(crowded, [a, b])
        return b

    def add(self, z: Tensor, y: int, **extra: Tensor) -> int | None:
        return self.carry_out(self.plan(z, y), y)

    def rows_after(self, plan: Plan, index: Tensor) -> Tensor:
        """Prototypes [n, d] at these slots as they will be once the plan is carried out."""
        rows = self.fields["z"].index_select(0, index).float()
        for write in (plan.new, plan.merged):
            if write is not None:
                rows[index == write.slot] = write.z.to(rows)
        return rows

    def outputs_after(self, plan: Plan, y: int) -> Tensor:
        """The output of every slot once the plan is carried out."""
        outputs = self.fields["y"][: max(self.length, plan.new.slot + 1)].clone()
        outputs[plan.new.slot] = y
        return outputs

    # ---- distances --------------------------------------------------------------------------

    def _count(self, slot: int) -> int:
        return int(self.fields["count"][slot])

    def _mean(self, slot: int, z: Tensor, count: int) -> Write:
        """The prototype in ``slot`` after ``count`` samples of mean ``z`` joined it."""
        total = self._count(slot) + count
        z = torch.lerp(self.fields["z"][slot].float(), z.float(), count / total)
        return Write(slot, z, min(total, LARGEST_COUNT))

    def _members(self, y: int) -> Tensor:
        return torch.tensor(self.index.slots.get(y, []), device=self.fields["y"].device).long()

    def _closest(self, y: int) -> tuple[int, int]:
        """The two closest prototypes of a class."""
        members = self._members(y)
        first = int(members[self.fields["gap"][members].argmin()])
        return first, int(self.fields["near"][first])

    def _link(self, y: int, changed: list[int]) -> None:
        """Nearest neighbours in a class again after prototypes came, moved or left."""
        members, z = self._members(y), self.fields["z"]
        gap, near = self.fields["gap"], self.fields["near"]
        if len(members) < 2:
            gap[members], near[members] = NOBODY, -1
            return
        moved = torch.tensor(changed, device=members.device)
        touched = torch.isin(members, moved)
        lost = torch.isin(near[members], moved)  # their neighbour is no longer what it was
        stale = members[touched | lost]
        # without a matrix product: distances of near duplicates would drown in rounding
        gaps = torch.cdist(
            z[stale].float(), z[members].float(), compute_mode="donot_use_mm_for_euclid_dist"
        )
        gaps[stale.unsqueeze(1) == members] = NOBODY
        nearest = gaps.min(1)
        gap[stale], near[stale] = nearest.values, members[nearest.indices]
        here = torch.isin(stale, moved)
        if bool(here.any()):  # a prototype that came or moved may now be the nearest of others
            nearest = gaps[here].min(0)
            closer = nearest.values < gap[members]
            gap[members[closer]] = nearest.values[closer]
            near[members[closer]] = stale[here][nearest.indices[closer]]

    # ---- content and state ------------------------------------------------------------------

    def _rebuild(self) -> None:
        super()._rebuild()
        if self._relinks:
            for y, slots in self.index.slots.items():
                self._link(y, slots)

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._relinks = False  # neighbours are in the state, exactly as they were
        try:
            super().load_state(state)
        finally:
            self._relinks = True
