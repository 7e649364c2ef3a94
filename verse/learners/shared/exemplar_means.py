"""The mean of what memory holds of each class, for methods that answer by the nearest one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from verse.memory.base import Memory

CHUNK = 256  # exemplars embedded at a time
ABSENT = -8.0  # score of a class without exemplars; others are ≥ −4, the sphere's diameter squared


class ExemplarMeans:
    """[classes, d]: the mean exemplar of each class, of length one, or zero if it has none.

    They follow from the memory and from the tensors that an embedding depends on, so they are kept
    until one of these changes, which the version numbers of the tensors show.
    """

    def __init__(self) -> None:
        self._kept: tuple[tuple[Tensor, ...], tuple[int, ...], Tensor] | None = None

    def __call__(
        self,
        memory: Memory,
        classes: int,
        d: int,
        embed: Callable[[Tensor], Tensor],
        *depends: Tensor,
    ) -> Tensor:
        """The means of ``embed(z)`` [n, d], of which each row is of length one."""
        tensors = (*depends, memory.fields["z"], memory.fields["y"])
        versioned = not any(t.is_inference() for t in tensors)
        versions = tuple(t._version for t in tensors) if versioned else ()
        if self._kept is not None and versioned and len(self._kept[2]) == classes:
            same = all(a is b for a, b in zip(self._kept[0], tensors, strict=True))
            if same and self._kept[1] == versions:
                return self._kept[2]
        exemplars = memory.all()
        means = torch.zeros(classes, d, device=tensors[0].device)
        for start in range(0, len(exemplars), CHUNK):
            part = slice(start, start + CHUNK)
            means.index_add_(0, exemplars.y[part], embed(exemplars.z[part]))
        means = normalize(means)
        self._kept = (tensors, versions, means) if versioned else None
        return means


def score_means(e: Tensor, means: Tensor) -> Tensor:
    """−‖e − μ_c‖² for rows e [n, d] and means, all of length one.

    >>> score_means(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[-2., -8.]])
    """
    return torch.where(means.any(1), 2 * (e @ means.t()) - 2, ABSENT)


def make_means_layer(means: Tensor) -> tuple[Tensor, Tensor]:
    """(weight, bias) of the linear layer that ``score_means`` is."""
    return 2 * means, torch.where(means.any(1), -2.0, ABSENT)
