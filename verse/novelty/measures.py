"""How far an image is from everything taught, and how undecided the answer is.

The measures come from statistics that the learner keeps anyway.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from verse.kernels.joint_statistics import JointStatistics
from verse.learners import Learner

MOST_CLASSES = 128  # that stand for all in the background, so that the cost stays bounded
MOST_NEIGHBOURS = 128  # remembered samples of a class that a new one is compared with


@runtime_checkable
class KeepsStatistics(Protocol):
    """A learner whose class means and covariance tell what is far from everything known."""

    statistics: JointStatistics

    def features(self, z: Tensor) -> Tensor:
        """What the statistics are of."""
        ...


@dataclass(frozen=True, slots=True)
class Measures:
    """Rows [n, 4] that grow with novelty: distance to the nearest class, the same relative to the
    background, closeness of the second class, entropy; and how many classes there were.

    >>> Measures(torch.zeros(1, 4), classes=3).rows.shape
    torch.Size([1, 4])
    """

    rows: Tensor
    classes: int


@torch.no_grad()
def measure(learner: Learner, Z: Tensor) -> Measures:
    """Measure features [n, …].

    With d_k² the squared Mahalanobis distance to class k, and m what it is to be expected of a new
    sample of its class: min d² / m; the same minus the distance to the background, a Gaussian that
    has the covariance within classes plus that of the class means; minus the root of what the
    second class is farther than the first, / m; the entropy of softmax(−d² / 0.6 √d) with d values
    in all, / log K. Relative to m, rows of few samples compare with those of many. A learner
    without statistics has only the last two, from its scores.
    """
    Z = learner.F.stored(Z)
    if isinstance(learner, KeepsStatistics):
        return _measure_statistics(learner.statistics, learner.features(Z))
    scores = torch.log_softmax(learner.logits(Z).float(), 1)
    none = scores.new_zeros(len(scores))
    rows = torch.stack((none, none, _closeness(-scores), _entropy(scores)), 1)
    return Measures(rows, scores.shape[1])


def measured_features(learner: Learner, Z: Tensor) -> Tensor:
    """What distances are of [n, d]: the features of the statistics, or all values at one length."""
    if isinstance(learner, KeepsStatistics):
        return learner.features(Z)
    flat = Z.flatten(1)
    length: Tensor = flat.norm(dim=1, keepdim=True).clamp_min(1e-12)
    return flat / length


@torch.no_grad()
def freshness(learner: Learner, z: Tensor, y: int) -> float:
    """How new a sample is to what is remembered of its class: 1 is another thing or place, near 0
    the next frame of a film that was taught.

    Its squared distance to the nearest remembered sample, / the mean over them.
    """
    memory = learner.memory
    if memory is None or "z" not in memory.fields:
        return 1.0
    field, F = memory.fields["z"], learner.F
    if tuple(field.shape[1:]) != F.stored_shape:  # codes instead of features
        return 1.0
    slots = torch.nonzero(memory.fields["y"][: memory.length] == y)[:, 0]
    if len(slots) > MOST_NEIGHBOURS:  # the latest, and some of all the others
        late = MOST_NEIGHBOURS // 2
        slots = torch.cat((slots[: -late : -(-len(slots) // late)], slots[-late:]))
    if not len(slots):
        return 1.0
    # a learner may keep features of another length: directions are compared
    rows = torch.cat((F.stored(z.unsqueeze(0)), field.index_select(0, slots).float()))
    rows = torch.nn.functional.normalize(measured_features(learner, rows))
    gaps = (rows[1:] - rows[0]).square().sum(1)
    return float(gaps.min() / gaps.mean().clamp_min(1e-12))


def _measure_statistics(known: JointStatistics, E: Tensor) -> Measures:
    squared = known.distances(E)
    around = Background.of(known)
    along = (E - known.origin) @ around.whitened.t()
    # |e − m|² and |m|² of the first class are known, so |e|² follows
    own = squared[:, 0] - around.sizes[0] + 2 * along[:, 0]
    usual = known.usual_distance
    background = around.distances(own, along) / usual
    entropy = _entropy(torch.log_softmax(squared / -temperature(known.d), 1))
    squared /= usual
    nearest = squared.min(1).values
    rows = torch.stack((nearest, nearest - background, _closeness(squared), entropy), 1)
    return Measures(rows, squared.shape[1])


def temperature(d: int) -> float:
    """What squared distances of d values are divided by before they compete."""
    return float(0.6 * d**0.5)


@dataclass(frozen=True)
class Background:
    """All that is known as one Gaussian: the covariance within classes plus that of their means.

    Everything is counted from the origin of the statistics: ``whitened`` [K, d] are the class means
    times Σ⁻¹, ``sizes`` [K] their squared lengths by Σ⁻¹, ``row`` [K] the means of their inner
    products, and ``between`` [K, K] what is to be inverted.

    >>> known = JointStatistics(2, torch.device("cpu"))
    >>> for y in range(2):
    ...     known.add_class(y + 1, torch.zeros(3))
    ...     known.add(torch.eye(2)[y], y)
    >>> Background.of(known).whitened.shape
    torch.Size([2, 2])
    """

    whitened: Tensor
    sizes: Tensor
    row: Tensor
    between: Tensor

    @classmethod
    def of(cls, known: JointStatistics) -> Background:
        """With many classes, some of them stand for all."""
        some = slice(None, None, -(-len(known.means) // MOST_CLASSES))
        means, whitened = known.means[some] - known.origin, known.weights[some] * known.scale
        products = whitened @ means.t()  # inner products of the class means [K, K]
        sizes, classes, row = products.diagonal().clone(), len(means), products.mean(0)
        between = products - row - row[:, None] + row.mean()
        between.diagonal().add_(classes)
        return cls(whitened, sizes, row, between)

    def distances(self, own: Tensor, along: Tensor) -> Tensor:
        """Squared distances [n], from eᵀΣ⁻¹e [n] and the products with the means [n, K]."""
        to_centre = own - 2 * along.mean(1) + self.row.mean()
        if len(self.row) < 2:
            return to_centre.clamp_(min=0)
        # Woodbury: the covariance of the class means has rank K
        along = along - along.mean(1, keepdim=True) - self.row + self.row.mean()
        explained = (along * torch.linalg.solve(self.between, along.t()).t()).sum(1)
        rest: Tensor = to_centre - explained
        return rest.clamp_(min=0)


def _closeness(distances: Tensor) -> Tensor:
    if distances.shape[1] < 2:
        return distances.new_zeros(len(distances))
    first, second = distances.topk(2, 1, largest=False).values.unbind(1)
    return -(second - first).sqrt()


def _entropy(log_p: Tensor) -> Tensor:
    nats = -(log_p.exp() * log_p.clamp_min(-1e4)).sum(1)
    return nats / max(math.log(log_p.shape[1]), 0.1)
