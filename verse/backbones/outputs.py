"""What a method may put behind the embedding besides the head, as layers that can be exported."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def unit_rows(e: Tensor) -> Tensor:
    """Each row of [n, d] divided by its length: ``nn.functional.normalize`` in half the time.

    >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    lengths: Tensor = torch.linalg.vector_norm(e, dim=1, keepdim=True)
    return e / lengths.clamp_(min=1e-12)


class UnitLength(nn.Module):
    """Each row of [n, d] divided by its length.

    >>> UnitLength()(torch.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """

    def forward(self, e: Tensor) -> Tensor:
        return unit_rows(e)


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


class Positions(nn.Module):
    """The positions of every channel in [n, c · positions] as linear sums of them.

    Parameters
    ----------
    mix
        [sums, positions].

    >>> Positions(torch.tensor([[1.0, 1.0], [1.0, -1.0]]))(torch.tensor([[3.0, 4.0, 1.0, 1.0]]))
    tensor([[ 7., -1.,  2.,  0.]])
    """

    mix: Tensor

    def __init__(self, mix: Tensor) -> None:
        super().__init__()
        self.register_buffer("mix", mix)

    def forward(self, e: Tensor) -> Tensor:
        return (e.view(len(e), -1, self.mix.shape[1]) @ self.mix.t()).flatten(1)


class WeightedSum(nn.Module):
    """a · A(z) + b · B(z)."""

    def __init__(self, A: nn.Module, a: float, B: nn.Module, b: float) -> None:
        super().__init__()
        self.A, self.a, self.B, self.b = A, a, B, b

    def forward(self, z: Tensor) -> Tensor:
        total: Tensor = self.A(z) * self.a + self.B(z) * self.b
        return total


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A layer with these values."""
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data, layer.bias.data = weight, bias
    return layer
