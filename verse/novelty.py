"""Known or not: how far an image is from everything taught, and how undecided the answer is.

The scores come from statistics that the learner keeps anyway; what counts as usual comes from the
stream itself, each frame of which is measured before it is learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from verse.kernels.joint_statistics import JointStatistics
from verse.learners import Learner
from verse.stateful import Stateful
from verse.types import BadSetting, BadState

WINDOW = 256  # latest known frames: earlier ones were measured when less was known
MOST_CLASSES = 128  # that stand for all in the background, so that the cost stays bounded
SELDOM = 4  # once the window is full, every fourth frame is measured
REFUSED = 0.05  # share of known frames that may be called unknown

# The same for all data; chosen on validation videos of five data sets (docs/trust.md).
FEW_CLASSES = 5.0  # with so many classes, "relative to the others" counts half
LEAST_SPREAD = torch.tensor([0.25, 0.25, 0.1, 0.05])
USUAL = torch.tensor([0.5, 0.1, -0.7, 0.0])  # before the stream has told: mean and spread, ...
SPREAD = torch.tensor([0.5, 0.15, 0.4, 0.05])
PRIOR = 16  # ... which count as so many frames
BLANK_NOVELTY = 10.0  # of a picture that shows nothing


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
    background, closeness of the second class, entropy; and how many classes there were."""

    rows: Tensor
    classes: int
    samples: float
    """Of each class, in the mean."""

    @property
    def least_threshold(self) -> float:
        """Frames taught look more usual than new ones of the same thing, the more were taught."""
        return 1 + 1.5 * self.samples / (self.samples + 10)


@torch.no_grad()
def measure(learner: Learner, Z: Tensor) -> Measures:
    """Measure features [n, …].

    With d_k² the squared Mahalanobis distance to class k, and a² the median of the squared
    distances of class means to the nearest other one: min d² / a²; the same minus the distance to
    the background, a Gaussian that has the covariance within classes plus that of the class means;
    minus the root of what the second class is farther than the first, / a; the entropy of
    softmax(−d² / 0.6 √d) with d values in all, / log K. Relative to a², rows of few samples compare
    with those of many. A learner without statistics has only the last two, from its scores.
    """
    Z = learner.F.stored(Z)
    if isinstance(learner, KeepsStatistics):
        return _measure_statistics(learner.statistics, learner.features(Z))
    scores = torch.log_softmax(learner.logits(Z).float(), 1)
    none = scores.new_zeros(len(scores))
    rows = torch.stack((none, none, _closeness(-scores), _entropy(scores)), 1)
    return Measures(rows, scores.shape[1], learner.samples / scores.shape[1])


def measured_features(learner: Learner, Z: Tensor) -> Tensor:
    """What distances are of [n, d]: the features of the statistics, or all values at one length."""
    if isinstance(learner, KeepsStatistics):
        return learner.features(Z)
    flat = Z.flatten(1)
    length: Tensor = flat.norm(dim=1, keepdim=True).clamp_min(1e-12)
    return flat / length


def _measure_statistics(known: JointStatistics, E: Tensor) -> Measures:
    squared = known.distances(E)
    background, apart = _background(known, E, squared)
    entropy = _entropy(torch.log_softmax(squared / (-0.6 * known.d**0.5), 1))
    squared /= apart
    nearest = squared.min(1).values
    rows = torch.stack((nearest, nearest - background / apart, _closeness(squared), entropy), 1)
    return Measures(rows, squared.shape[1], known.samples / squared.shape[1])


def _background(known: JointStatistics, E: Tensor, squared: Tensor) -> tuple[Tensor, float]:
    """Squared distance to all that is known as one Gaussian, and how far classes are apart."""
    some = slice(None, None, -(-len(known.means) // MOST_CLASSES))
    means, whitened = known.means[some] - known.origin, known.weights[some] * known.scale
    products = whitened @ means.t()  # inner products of the class means [K, K]
    size, classes = products.diagonal(), len(means)
    along = (E - known.origin) @ whitened.t()
    # |e − m|² and |m|² of every class are known, so |e|² and the distance to the centre follow
    to_centre = (squared[:, 0] - size[0] + 2 * along[:, 0]) - 2 * along.mean(1) + products.mean()
    if classes < 2:
        return to_centre.clamp_(min=0), float(known.d)
    pairs = size[:, None] + size[None] - 2 * products
    pairs.fill_diagonal_(math.inf)
    apart = max(float(pairs.min(1).values.median()), 1e-6)
    # Woodbury: the covariance of the class means has rank K
    row = products.mean(0)
    between = products - row - row[:, None] + row.mean()
    along = along - along.mean(1, keepdim=True) - row + row.mean()
    between.diagonal().add_(classes)
    explained = (along * torch.linalg.solve(between, along.t()).t()).sum(1)
    return (to_centre - explained).clamp_(min=0), apart


def _closeness(distances: Tensor) -> Tensor:
    if distances.shape[1] < 2:
        return distances.new_zeros(len(distances))
    first, second = distances.topk(2, 1, largest=False).values.unbind(1)
    return -(second - first).sqrt()


def _entropy(log_p: Tensor) -> Tensor:
    nats = -(log_p.exp() * log_p.clamp_min(-1e4)).sum(1)
    return nats / max(math.log(log_p.shape[1]), 0.1)


def check_share(refused: float) -> float:
    """A share of frames: above 0, below 1."""
    if not 0 < refused < 1:
        raise BadSetting(f"refused is a share of frames between 0 and 1, not {refused}")
    return refused


def due(novelty: Novelty, samples: int, classes: int) -> bool:
    """Is this frame of a known class to be measured? Later in the stream not every one is."""
    return classes > 1 and (novelty.count < WINDOW or samples % SELDOM == 0)


class Novelty(Stateful):
    """What is usual in a stream, and so what is not.

    The score of a frame is a sum of its measures, each as so many spreads above the mean of the
    latest known frames. With few classes the distance counts, with many also how it compares to
    other classes. 0 is usual, 1 the threshold, above which a frame is unknown.

    >>> novelty = Novelty()
    >>> novelty.count
    0
    """

    def __init__(self) -> None:
        self.rows = torch.zeros(WINDOW, 4)
        self.count = 0  # known frames measured so far

    def observe(self, measures: Measures) -> None:
        """A known frame, measured before it is learned."""
        self.rows[self.count % WINDOW] = measures.rows[0].cpu()
        self.count += 1

    def judge(self, measures: Measures, *, refused: float = REFUSED) -> Tensor:
        """Novelty [n]; above 1 is unknown. ``refused``: share of known frames that may be."""
        refused = check_share(refused)
        usual = self.rows[self._latest()]
        frames = len(usual) + PRIOR
        mean = (usual.sum(0) + PRIOR * USUAL) / frames
        squares = (usual - mean).square().sum(0) + PRIOR * (SPREAD**2 + (USUAL - mean) ** 2)
        spread = (squares / frames + LEAST_SPREAD**2).sqrt()
        relative = measures.classes / (measures.classes + FEW_CLASSES)

        def score(rows: Tensor) -> Tensor:
            distance, background, close, entropy = ((rows.cpu() - mean) / spread).unbind(1)
            undecided = (0.5 * close + entropy).clamp(-3, 3)
            return (1 - relative) * distance + relative * (background + undecided)

        least = measures.least_threshold
        imagined = torch.linspace(0, 1.5 * least, PRIOR)
        threshold = torch.quantile(torch.cat((score(usual), imagined)), 1 - refused)
        return score(measures.rows) / threshold.clamp_min(least)

    def _latest(self) -> Tensor:
        """Places of the latest known frames: half of the stream at most."""
        n = min(WINDOW, max(8, self.count // 2), self.count)
        return torch.arange(self.count - n, self.count) % WINDOW

    def absorb(self, other: Novelty) -> None:
        """What was usual in either stream: both windows by age, the oldest of both left out."""
        both = [novelty.rows[novelty._places()] for novelty in (self, other)]
        age = torch.cat([(torch.arange(len(rows)) + 0.5) / max(1, len(rows)) for rows in both])
        rows = torch.cat(both)[age.argsort(stable=True)][-WINDOW:]
        self.count += other.count
        self.rows = torch.zeros(WINDOW, 4)
        self.rows[self._places()] = rows

    def _places(self) -> Tensor:
        """Places of all rows there are, the oldest first."""
        return torch.arange(max(0, self.count - WINDOW), self.count) % WINDOW

    # ---- state ------------------------------------------------------------------------------

    def mark(self) -> Any:
        return self.count, self.rows[self.count % WINDOW].clone()

    def undo(self, mark: Any) -> None:
        self.count = mark[0]
        self.rows[self.count % WINDOW] = mark[1]

    def state(self) -> dict[str, Tensor]:
        return {"rows": self.rows, "count": torch.tensor(self.count)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        rows, count = state.get("rows"), state.get("count")
        if rows is None or count is None or rows.shape != self.rows.shape or count.numel() != 1:
            raise BadState("the saved novelty is damaged: its tensors are missing or misshaped")
        if int(count) < 0 or not bool(torch.isfinite(rows).all()):
            raise BadState("the saved novelty is damaged: its values make no sense")
        self.rows, self.count = rows.float().clone(), int(count)

    def follow(self, other: Novelty) -> None:
        self.rows.copy_(other.rows)
        self.count = other.count
