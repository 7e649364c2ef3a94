"""How far an image is from everything taught, and how little its answer can be relied on.

The measures come from what the learner keeps anyway: the statistics of what is in a picture, and
the probabilities that it answers with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from verse.kernels.joint_statistics import JointStatistics
from verse.learners import Learner
from verse.learners.shared.grid_features import GridFeatures
from verse.network.products import limit_threads

MOST_NEIGHBOURS = 128  # remembered samples of a class that a new one is compared with
LEAST_PROBABILITY = 1e-30


@runtime_checkable
class KeepsStatistics(Protocol):
    """A learner whose class means and covariance tell what is far from everything known.

    ``averages`` are of what is in a picture, wherever it is: every so many of ``features``.
    """

    averages: JointStatistics
    features: GridFeatures


@dataclass(frozen=True, slots=True)
class Measures:
    """What grows with the novelty of a feature.

    Parameters
    ----------
    rows
        [n, 3]: squared distance to the nearest class, the same minus that to the background,
        surprise.
    classes
        How many there were.
    expected
        The squared distance of a new sample to its own class that is to be expected.

    >>> Measures(torch.zeros(1, 3), classes=3).rows.shape
    torch.Size([1, 3])
    """

    rows: Tensor
    classes: int
    expected: float = 1.0


@torch.no_grad()
def measure_novelty(learner: Learner, Z: Tensor, probabilities: Tensor | None = None) -> Measures:
    """Measure features [n, …]; ``probabilities`` [n, classes] are the learner's, if they are known.

    The distances are those of Mahalanobis. The background is a Gaussian that has the covariance
    within classes plus that of the class means. Surprise is −log of the largest probability. A
    learner without statistics has only the last one.
    """
    if probabilities is None:
        probabilities = learner.predict_proba_many(Z)
    surprise = -probabilities.amax(1, keepdim=True).clamp_min(LEAST_PROBABILITY).log()
    classes = probabilities.shape[1]
    # as ``KeepsStatistics``, without the tenth of a millisecond that asking for a protocol takes
    averages, features = getattr(learner, "averages", None), getattr(learner, "features", None)
    if not (isinstance(averages, JointStatistics) and isinstance(features, GridFeatures)):
        return Measures(torch.cat((surprise.new_zeros(len(surprise), 2), surprise), 1), classes)
    with limit_threads(Z.numel()):
        E = features.averages(learner.F.stored(Z))
        squared, background = averages.distances_and_background(E)
        nearest = squared.amin(1)
        rows = torch.cat((torch.stack((nearest, nearest - background), 1), surprise), 1)
        return Measures(rows, classes, averages.usual_distance)


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
    # directions are compared: a learner may keep features of another length
    with limit_threads(len(slots) * z.numel()):
        new = F.stored(z.unsqueeze(0)).flatten()
        rows = field.index_select(0, slots).float().flatten(1)
        lengths = torch.linalg.vector_norm(rows, dim=1) * torch.linalg.vector_norm(new)
        gaps = (1 - (rows @ new) / lengths.clamp_min(1e-12)).clamp_min(0)
        return float(gaps.min() / gaps.mean().clamp_min(1e-6))
