"""What is well known leaves first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch

from verse.memory.class_balanced import ClassBalanced


class Doubtful(ClassBalanced):
    """Class-balanced; in the largest class a sample leaves with a chance falling with its doubt.

    Needs a field ``doubt`` (a loss or an uncertainty, at the last visit): the chance to be
    replaced is proportional to exp(−doubt).

    Parameters
    ----------
    capacity, byte_limit, per_class, dtype, seed
        As in ``Memory``.

    >>> memory = Doubtful(2)
    >>> memory.allocate(torch.device("cpu"), z=(1,), doubt=())
    >>> for doubt in [50.0, 0.0, 0.0, 0.0]:
    ...     _ = memory.add(torch.tensor([doubt]), 0, doubt=torch.tensor(doubt))
    >>> memory.all().z.max().item()
    50.0
    """

    name: ClassVar[str] = "doubtful"
    NEEDS: ClassVar[Mapping[str, int]] = {"doubt": 0}

    def _pick_victim(self) -> int:
        slots = self.index.slots[self.index.largest(self.random)]
        doubt = self.fields["doubt"][slots].double()
        chances = torch.softmax(-doubt, 0).cumsum(0)
        picked = int(torch.searchsorted(chances, self.random.uniform()))
        return slots[min(picked, len(slots) - 1)]
