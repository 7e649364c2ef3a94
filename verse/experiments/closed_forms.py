"""Linear classifiers in closed form on features that training never changes.

They bound what a frozen network is good for: Offline, trained by SGD, must not fall behind them,
and the best of all is what Ω divides by. Everything follows from sums over samples, so classes can
be added one after the other, as a stream shows them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from verse.evaluate import Ints, Samples
from verse.learners.shared.fixed_features import CHOICES, FixedFeatures
from verse.network.net import Net
from verse.network.plastic import Plastic

BATCH = 256
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # of ridge regression, shares of the mean eigenvalue
SHRINKAGES = (0.001, 0.01, 0.1, 0.3)  # shares of the mean variance


def features_of(F: Plastic) -> tuple[str, ...]:
    """The features that methods of statistics may look at, those that differ: without positions
    there is no grid, and where F is linear its embedding is then the input."""
    if len(F.z_shape) == 3 and min(F.z_shape[1:]) >= 2:
        return CHOICES
    linear = F.head.d == int(np.prod(F.z_shape))
    return CHOICES[:1] if linear else CHOICES[:2]


def iterate_features(
    F: Plastic, samples: Samples, choice: str = "embedding"
) -> Iterator[tuple[Tensor, Ints]]:
    """(features [n, d], labels [n]) of all samples, a batch at a time."""
    read = FixedFeatures(choice, Net(F))
    for start in range(0, len(samples), BATCH):
        rows = np.arange(start, min(start + BATCH, len(samples)))
        yield read(F.stored(torch.as_tensor(samples[rows]))).double().cpu(), samples.y[rows]


class Sums:
    """What discriminant analysis and ridge regression need of the samples so far.

    >>> sums = Sums()
    >>> E = torch.tensor([[0.0, 0.1], [0.1, 0.0], [1.0, 1.1], [1.1, 1.0]], dtype=torch.float64)
    >>> sums.add(E, np.array([7, 7, 1, 1]))
    >>> sums.lda(E, 0.1).tolist(), sums.ridge(E).tolist()
    ([7, 7, 1, 1], [7, 7, 1, 1])
    """

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.totals: dict[int, Tensor] = {}
        self.second = torch.zeros(0, dtype=torch.float64)  # Σ e eᵀ [d, d]

    def add(self, E: Tensor, y: Ints) -> None:
        """More samples: features [n, d] in float64, labels [n]."""
        if not self.second.numel():
            self.second = torch.zeros(E.shape[1], E.shape[1], dtype=torch.float64)
        self.second.addmm_(E.t(), E)
        for label in np.unique(y).tolist():
            rows = E[torch.from_numpy(y == label)]
            self.counts[label] = self.counts.get(label, 0) + len(rows)
            self.totals[label] = self.totals.get(label, torch.zeros_like(rows[0])) + rows.sum(0)

    def lda(self, E: Tensor, shrinkage: float) -> Ints:
        """Answers by discriminant analysis with Σ = (1 − ε) S / N + ε v I, v the mean variance."""
        labels, counts, means = self._classes()
        S = (self.second - (counts * means).t() @ means) / counts.sum()
        variance = S.diagonal().mean().clamp_min(1e-12)
        A = S * (1 - shrinkage)
        A.diagonal().add_(shrinkage * variance)
        W = torch.linalg.solve(A, means.t()).t()
        return self._answers(E @ W.t() - 0.5 * (means * W).sum(1), labels)

    def ridge(self, E: Tensor) -> Ints:
        """Answers by ridge regression from standardised features to one-hot labels.

        The penalty is chosen by generalised cross-validation (G. Golub, M. Heath, G. Wahba,
        Technometrics 1979).
        """
        labels, counts, means = self._classes()
        n = float(counts.sum())
        centre = (counts * means).sum(0) / n
        scale = (self.second.diagonal() / n - centre.square()).clamp_min(0).sqrt() + 1e-6
        X = (self.second - n * torch.outer(centre, centre)) / torch.outer(scale, scale)
        share = counts[:, 0] / n
        XY = (counts * (means - centre)).t() / scale[:, None]  # centred targets: Σ x (t − share)
        total = float((counts[:, 0] * (1 - share)).sum())  # Σ ‖t − share‖²
        values, vectors = torch.linalg.eigh(X)
        values = values.clamp_min(0)
        rotated = vectors.t() @ XY
        best, chosen = float("inf"), torch.zeros_like(rotated)
        for relative in PENALTIES:
            shrunk = 1 / (values + relative * values.mean().clamp_min(1e-12))
            explained = (rotated.square() * (2 * shrunk - values * shrunk.square())[:, None]).sum()
            left = (1 - ((values * shrunk).sum() + 1) / (n + 1)).clamp_min(1e-6)
            score = float((total - explained) / left.square())
            if score < best:
                best, chosen = score, shrunk[:, None] * rotated
        return self._answers((E - centre) / scale @ (vectors @ chosen) + share, labels)

    def _classes(self) -> tuple[Ints, Tensor, Tensor]:
        """Labels [k], counts [k, 1], means [k, d]."""
        labels = sorted(self.counts)
        counts = torch.tensor([[self.counts[k]] for k in labels], dtype=torch.float64)
        return np.array(labels), counts, torch.stack([self.totals[k] for k in labels]) / counts

    def _answers(self, scores: Tensor, labels: Ints) -> Ints:
        answers: Ints = labels[scores.argmax(1).numpy()]
        return answers
