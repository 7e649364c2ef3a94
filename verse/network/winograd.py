"""3×3 convolutions of small maps by minimal filtering: a third of the multiplications.

S. Winograd, "Arithmetic complexity of computations", 1980; for convolutional networks A. Lavin and
S. Gray, "Fast algorithms for convolutional neural networks", CVPR 2016. Four outputs of a filter of
three taps need six products instead of twelve; in two dimensions 36 instead of 144::

    y = Aᵀ [ (G w) ⊙ (Bᵀ x) ]        (Toom–Cook: evaluate at six points, multiply, interpolate)

Maps are [h·w, n·c] here (position first). Then the transforms of a whole batch are one product with
a constant matrix each, and the multiplications one batched product over the 36 points. A map of 7×7
has 2×2 tiles: 36 · 4 = 144 products in place of 441.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import torch
from torch import Tensor

from verse.network.products import multiply_tensors

TILE, TAPS = 4, 3
POINTS = TILE + TAPS - 1
# Evaluating at 0, ±5/8, ±5/4, ∞ loses a third of the precision that 0, ±1, ±2, ∞ loses: 2e-6 of the
# largest output against 8e-6 (and 3e-7 for the direct sum). All five are exact in float32.
AT = tuple(Fraction(numerator, 8) for numerator in (0, 5, -5, 10, -10))
LARGEST_MAP = 2 * TILE  # beyond, the constant matrices (dense though they need not be) cost more


def _evaluate(length: int) -> list[list[Fraction]]:
    """A polynomial's coefficients [length] → its values at the points; the last point is ∞."""
    rows = [[point**power for power in range(length)] for point in AT]
    return [*rows, [Fraction(int(power == length - 1)) for power in range(length)]]


def _inverse(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    n = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(n))] for i, row in enumerate(matrix)]
    for c in range(n):
        pivot = next(i for i in range(c, n) if rows[i][c])
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [value / rows[c][c] for value in rows[c]]
        for i in range(n):
            if i != c:
                rows[i] = [a - rows[i][c] * b for a, b in zip(rows[i], rows[c], strict=True)]
    return [row[n:] for row in rows]


def _tensor(matrix: list[list[Fraction]]) -> Tensor:
    return torch.tensor([[float(value) for value in row] for row in matrix], dtype=torch.float64)


@dataclass(frozen=True)
class Transforms:
    """The constant matrices for maps of one size; points and tiles in the order [36, tiles]."""

    inputs: Tensor  # [36 · tiles, h · w]
    outputs: Tensor  # [h · w, 36 · tiles]
    weights: Tensor  # [36, 9]
    tiles: int


@lru_cache(maxsize=16)
def transforms(high: int, wide: int, device: torch.device) -> Transforms:
    """Matrices for maps of ``high`` × ``wide`` with one ring of zeros around.

    >>> transforms(7, 7, torch.device("cpu")).inputs.shape
    torch.Size([144, 49])
    """
    interpolate = _tensor(_inverse(_evaluate(POINTS))).t()  # Bᵀ [point, input]
    evaluate, taps = _tensor(_evaluate(TILE)), _tensor(_evaluate(TAPS))

    def along(size: int) -> tuple[Tensor, Tensor]:
        tiles = -(-size // TILE)
        into = torch.zeros(POINTS, tiles, size, dtype=torch.float64)
        out = torch.zeros(size, POINTS, tiles, dtype=torch.float64)
        for tile in range(tiles):
            for i in range(POINTS):
                if 0 <= tile * TILE + i - 1 < size:
                    into[:, tile, tile * TILE + i - 1] = interpolate[:, i]
            for i in range(min(TILE, size - tile * TILE)):
                out[tile * TILE + i, :, tile] = evaluate[:, i]
        return into, out

    (into_h, out_h), (into_w, out_w) = along(high), along(wide)
    tiles = into_h.shape[1] * into_w.shape[1]
    inputs = torch.einsum("atp,bsq->abtspq", into_h, into_w).reshape(-1, high * wide)
    outputs = torch.einsum("pat,qbs->pqabts", out_h, out_w).reshape(high * wide, -1)
    weights = torch.einsum("ai,bj->abij", taps, taps).reshape(POINTS**2, TAPS**2)
    inputs, outputs, weights = (m.float().to(device) for m in (inputs, outputs, weights))
    return Transforms(inputs, outputs, weights, tiles)


def transform_weights(weight: Tensor, out: Tensor) -> Tensor:
    """w [9, in · out] → [36, in, out]."""
    matrices = transforms(LARGEST_MAP, LARGEST_MAP, weight.device)
    multiply_tensors(matrices.weights, weight, out.view(POINTS**2, -1))
    return out
