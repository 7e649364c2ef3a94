"""What a method may put behind the embedding besides the head, as layers that can be exported."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class UnitLength(nn.Module):
    """Each row of [n, d] divided by its length.

    >>> UnitLength()(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """

    def forward(self, e: Tensor) -> Tensor:
        return nn.functional.normalize(e)


class Columns(nn.Module):
    """Some of the outputs only: those of classes that were not forgotten.

    >>> Columns([2, 0])(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1.]])
    """

    index: Tensor

    def __init__(self, index: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("index", torch.tensor(list(index), dtype=torch.int64))

    def forward(self, scores: Tensor) -> Tensor:
        return scores[:, self.index]
