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

    Parameters
    ----------
    index
        The outputs that stay, in this order.

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


class Cosine(nn.Module):
    """The cosine of every value, times a factor.

    Parameters
    ----------
    factor
        What the cosine is multiplied by.

    >>> Cosine(2.0)(torch.zeros(1, 2))
    tensor([[2., 2.]])
    """

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, e: Tensor) -> Tensor:
        return torch.cos(e) * self.factor


class SignedPower(nn.Module):
    """sign(e) |e|^exponent of every value: Tukey's ladder of powers where values have signs.

    Parameters
    ----------
    exponent
        Of the absolute value.

    >>> SignedPower(0.5)(torch.tensor([[4.0, -9.0]]))
    tensor([[ 2., -3.]])
    """

    def __init__(self, exponent: float) -> None:
        super().__init__()
        self.exponent = exponent

    def forward(self, e: Tensor) -> Tensor:
        return e.sign() * e.abs().pow(self.exponent)


class ClassDistances(nn.Module):
    """−½ ‖(e − μ_k) W_k‖² [n, classes]: each class has its own metric.

    Parameters
    ----------
    means
        μ [classes, d].
    metrics
        W [classes, d, d].

    >>> ClassDistances(torch.zeros(1, 2), 2 * torch.eye(2).unsqueeze(0))(torch.ones(1, 2))
    tensor([[-4.]])
    """

    metrics: Tensor
    shifts: Tensor

    def __init__(self, means: Tensor, metrics: Tensor) -> None:
        super().__init__()
        self.register_buffer("metrics", metrics)
        self.register_buffer("shifts", -(means.unsqueeze(1) @ metrics))  # [classes, 1, d]

    def forward(self, e: Tensor) -> Tensor:
        # a class at a time: [classes, n, d] would not fit for thousands of rows
        parts = zip(self.shifts, self.metrics, strict=True)
        squared = [torch.addmm(shift, e, metric).square().sum(1) for shift, metric in parts]
        return -0.5 * torch.stack(squared, 1)


class WeightedSum(nn.Module):
    """a · A(z) + b · B(z).

    Parameters
    ----------
    A, B
        Two modules with the same input and shape of output.
    a, b
        Their weights.
    """

    def __init__(self, A: nn.Module, a: float, B: nn.Module, b: float) -> None:
        super().__init__()
        self.A, self.a, self.B, self.b = A, a, B, b

    def forward(self, z: Tensor) -> Tensor:
        total: Tensor = self.A(z) * self.a + self.B(z) * self.b
        return total


class Smallest(nn.Module):
    """The smallest of each row, [n, 1].

    >>> Smallest()(torch.tensor([[3.0, 1.0, 2.0]]))
    tensor([[1.]])
    """

    def forward(self, rows: Tensor) -> Tensor:
        return rows.amin(1, keepdim=True)


class Both(nn.Module):
    """(A(z), B(z)).

    Parameters
    ----------
    A, B
        Two modules with the same input.
    """

    def __init__(self, A: nn.Module, B: nn.Module) -> None:
        super().__init__()
        self.A, self.B = A, B

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.A(z), self.B(z)


def make_linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A layer with these values."""
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data, layer.bias.data = weight, bias
    return layer
