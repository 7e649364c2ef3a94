"""Exemplars whose mean stays near the mean of their class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from verse.memory.class_balanced import ClassBalanced


def find_redundant(E: Tensor, mean: Tensor) -> int:
    """The row of E [m, d] without which the mean of the others is nearest to ``mean``.

    >>> find_redundant(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([0.5]))
    2
    """
    others = (E.sum(0) - E) / max(1, E.shape[0] - 1)
    return int((others - mean).square().sum(1).argmin())


class Herding(ClassBalanced):
    """Class-balanced; what leaves is chosen by herding, one sample at a time.

    S.-A. Rebuffi et al., "iCaRL: incremental classifier and representation learning", CVPR 2017,
    choose the m exemplars of a class greedily so that their mean approximates the class mean. A
    stream offers one candidate at a time: of the m + 1 samples of a class, the one leaves without
    which the mean of the remaining is nearest to the mean of all samples of the class so far.
    Needs a field ``e``, the embedding of a sample.

    Parameters
    ----------
    capacity, byte_limit, per_class, dtype, seed
        As in ``Memory``.

    >>> memory = Herding(2)
    >>> memory.allocate(torch.device("cpu"), z=(1,), e=(1,))
    >>> for value in [0.0, 1.0, 9.0, 0.5, 0.5, 0.5, 0.5, 0.5]:
    ...     _ = memory.add(torch.tensor([value]), 0, e=torch.tensor([value]))
    >>> bool(memory.all().z.max() < 9)
    True
    """

    name: ClassVar[str] = "herding"
    NEEDS: ClassVar[Mapping[str, int]] = {"e": 1}

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
        self.sums: dict[int, Tensor] = {}  # class → sum of the embeddings of all its samples
        self.totals: dict[int, int] = {}

    def add(self, z: Tensor, y: int, **extra: Tensor) -> int | None:
        e = extra["e"].double()
        self.sums[y] = self.sums.get(y, torch.zeros_like(e)) + e
        self.totals[y] = self.totals.get(y, 0) + 1
        self._offered = extra["e"]
        return super().add(z, y, **extra)

    def mean(self, y: int) -> Tensor:
        """The mean embedding of all samples of a class so far."""
        return (self.sums[y] / self.totals[y]).float()

    def slot(self, y: int) -> int | None:
        if self.length < self.limit:
            return self.length
        largest = self.index.largest(self.random)
        if self.index.size(y) < self.index.size(largest):
            return self._pick_from(largest)
        slots = self.index.slots[y]
        E = torch.cat((self.fields["e"][slots], self._offered.view(1, -1)))
        leaving = find_redundant(E, self.mean(y))
        return slots[leaving] if leaving < len(slots) else None

    def _pick_victim(self) -> int:
        return self._pick_from(self.index.largest(self.random))

    def _pick_from(self, y: int) -> int:
        slots = self.index.slots[y]
        return slots[find_redundant(self.fields["e"][slots], self.mean(y))]

    def discard(self, y: int) -> int:
        self.sums.pop(y, None)
        self.totals.pop(y, None)
        return super().discard(y)

    def relabel(self, y: int, into: int) -> int:
        if y in self.sums:
            joined = self.sums.pop(y)
            self.sums[into] = self.sums[into] + joined if into in self.sums else joined
            self.totals[into] = self.totals.get(into, 0) + self.totals.pop(y)
        return super().relabel(y, into)

    def _close_gap(self, output: int) -> None:
        self.sums = {y - (y > output): value for y, value in self.sums.items()}
        self.totals = {y - (y > output): value for y, value in self.totals.items()}
        super()._close_gap(output)

    def state(self) -> dict[str, Tensor]:
        width = self.fields["e"].shape[1]
        return super().state() | {
            "herd.classes": torch.tensor(list(self.sums), dtype=torch.int64),
            "herd.totals": torch.tensor(list(self.totals.values()), dtype=torch.int64),
            "herd.sums": torch.stack(list(self.sums.values()))
            if self.sums
            else torch.zeros(0, width, dtype=torch.float64),
        }

    def load_state(self, state: dict[str, Tensor]) -> None:
        super().load_state(state)
        classes: list[Any] = state["herd.classes"].tolist()
        device = self.fields["y"].device
        self.sums = dict(zip(classes, state["herd.sums"].clone().to(device), strict=True))
        self.totals = dict(zip(classes, state["herd.totals"].tolist(), strict=True))
