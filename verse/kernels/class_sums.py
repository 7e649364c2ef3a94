"""What both forms of ridge regression on class labels keep of each class."""

from __future__ import annotations

import torch
from torch import Tensor

from verse.stateful import PerClass


class ClassSums(PerClass):
    """Q of a ridge regression: the row Q_k is the sum of all vectors of class k.

    A subclass says in ``_sum_up`` how the samples that it still holds one by one become part of
    its statistics: no single sample of a class that leaves may stay behind.

    Parameters
    ----------
    d
        Length of a vector.
    ridge
        λ.
    device
        Where to compute.
    """

    def __init__(self, d: int, ridge: float, device: torch.device) -> None:
        self.ridge = ridge
        self.sums = torch.zeros(0, d, device=device)

    def _sum_up(self) -> None:
        raise NotImplementedError

    def add_class(self, classes: int, row: Tensor) -> None:
        self.sums = torch.cat((self.sums, self.sums.new_zeros(1, self.sums.shape[1])))

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        if into is not None:
            self.sums[into] += self.sums[output]
        others = torch.arange(len(self.sums), device=self.sums.device) != output
        self.sums = self.sums[others]
        self._sum_up()
        return 0
