"""Measures of streaming learning: pure functions of predictions and accuracy curves.

Notation of VERSE and of Hayes et al., "Memory Efficient Experience Replay for Streaming Learning"
(ICRA 2019): α_t is the accuracy at test event t, μ_all its mean, Ω_all the mean of α_t divided by
the accuracy an Offline learner has on the same test. A table of accuracies ``[T, K]`` holds event
t and class k, with NaN where a class was not under test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from verse.types import BadData, BadSetting

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def accuracy(predicted: npt.ArrayLike, true: npt.ArrayLike) -> float:
    """Share of right answers: α_t when given the frames under test at event t.

    >>> accuracy([1, 2, 2, 0], [1, 2, 0, 0])
    0.75
    """
    p, y = _align(predicted, true)
    return float(np.mean(p == y))


def mu_all(alpha: Sequence[float]) -> float:
    """μ_all = (1/T) Σ_t α_t.

    >>> mu_all([1.0, 0.5])
    0.75
    """
    return float(np.mean(_curve(alpha, "alpha")))


def omega_all(alpha: Sequence[float], offline: Sequence[float]) -> float:
    """Ω_all = (1/T) Σ_t α_t / α_offline,t, not clipped at 1: beating Offline shows.

    >>> omega_all([0.9, 0.6], [1.0, 0.5])
    1.05
    """
    a, o = _curve(alpha, "alpha"), _curve(offline, "offline")
    if len(a) != len(o):
        raise BadData(
            f"{len(a)} test events of the learner and {len(o)} of Offline do not match; "
            "both must follow one schedule"
        )
    if (o <= 0).any():
        raise BadData(
            f"Offline has accuracy 0 at event {int(np.argmax(o <= 0)) + 1}: it is broken,"
            " and nothing can be divided by it"
        )
    return float(np.mean(a / o))


def final_accuracy(alpha: Sequence[float]) -> float:
    """α_T, the accuracy at the last event.

    >>> final_accuracy([0.9, 0.7])
    0.7
    """
    return float(_curve(alpha, "alpha")[-1])


def per_class(predicted: npt.ArrayLike, true: npt.ArrayLike, classes: int) -> Floats:
    """Accuracy on each class [K]; NaN for a class without test frames.

    >>> per_class([0, 0, 1], [0, 1, 1], classes=3).tolist()
    [1.0, 0.5, nan]
    """
    p, y = _align(predicted, true)
    _within(y, classes)
    total = np.bincount(y, minlength=classes)
    right = np.bincount(y[p == y], minlength=classes)
    shares: Floats = np.full(classes, np.nan)
    np.divide(right, total, out=shares, where=total > 0)
    return shares


def confusion(predicted: npt.ArrayLike, true: npt.ArrayLike, classes: int) -> Ints:
    """Counts [K, K]: row the true class, column the answer.

    >>> confusion([0, 0, 1], [0, 1, 1], classes=2).tolist()
    [[1, 0], [1, 1]]
    """
    p, y = _align(predicted, true)
    _within(y, classes)
    _within(p, classes)
    return np.bincount(y * classes + p, minlength=classes * classes).reshape(classes, classes)


def forgetting(table: npt.ArrayLike) -> float:
    """Mean over classes known before the last event of (best accuracy before) − (accuracy at T).

    Chaudhry et al., "Riemannian Walk for Incremental Learning" (ECCV 2018). Negative when classes
    got better; 0 when there was one event only.

    >>> forgetting([[1.0, float("nan")], [0.5, 1.0]])
    0.5
    """
    before, last = _before_and_last(table)
    return float(np.mean(np.nanmax(before, axis=0) - last)) if before.size else 0.0


def backward_transfer(table: npt.ArrayLike) -> float:
    """Mean over classes known before the last event of (accuracy at T) − (when first tested).

    Lopez-Paz and Ranzato, "Gradient Episodic Memory" (NeurIPS 2017).

    >>> backward_transfer([[1.0, float("nan")], [0.5, 1.0]])
    -0.5
    """
    before, last = _before_and_last(table)
    if not before.size:
        return 0.0
    first = before[np.argmax(~np.isnan(before), axis=0), np.arange(before.shape[1])]
    return float(np.mean(last - first))


def prequential(correct: npt.ArrayLike, window: int | None = None) -> Floats:
    """Predict-then-learn accuracy after each frame [n]: of all frames so far, or of the last few.

    >>> prequential([1, 0, 1]).round(2).tolist(), prequential([1, 0, 1], window=2).tolist()
    ([1.0, 0.5, 0.67], [1.0, 0.5, 0.5])
    """
    hits = np.asarray(correct, dtype=np.float64)
    if hits.ndim != 1 or not len(hits):
        raise BadData("prequential accuracy needs one answer per frame, and at least one frame")
    n = len(hits)
    if window is not None and window < 1:
        raise BadSetting("a window counts frames: a whole number from 1")
    width = n if window is None else min(window, n)
    total = np.concatenate([[0.0], np.cumsum(hits)])
    start = np.maximum(np.arange(1, n + 1) - width, 0)
    return np.asarray((total[1:] - total[start]) / (np.arange(1, n + 1) - start))


class ByVideo(NamedTuple):
    """Right answers and frames of each test video, the unit an interval resamples.

    Parameters
    ----------
    videos
        Their numbers.
    right
        Right answers in each.
    total
        Frames of each.
    """

    videos: Ints
    right: Ints
    total: Ints


def calibration_error(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = 10) -> float:
    """Expected calibration error: how far confidence is from the share of right answers.

    The mean over ``bins`` of equal width, weighted by the answers in each (M. Naeini et al.,
    "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015).

    >>> round(calibration_error([0.9, 0.9, 0.5, 0.5], [True, True, True, False]), 3)
    0.05
    """
    c, hit = np.asarray(confidence, np.float64), np.asarray(right, bool)
    if c.shape != hit.shape or c.ndim != 1 or not len(c):
        raise BadData(f"{c.shape} confidences and {hit.shape} answers: they must be parallel lists")
    if not ((c >= 0) & (c <= 1)).all():
        raise BadData("a confidence is a number from 0 to 1")
    place = np.minimum((c * bins).astype(int), bins - 1)
    sums = [np.bincount(place, values, bins) for values in (c, hit.astype(np.float64))]
    return float(np.abs(sums[0] - sums[1]).sum() / len(c))


def by_video(predicted: npt.ArrayLike, true: npt.ArrayLike, videos: npt.ArrayLike) -> ByVideo:
    """Count answers by test video; frames of a video are too alike to count as independent.

    >>> by_video([0, 1, 1], [0, 0, 1], [7, 7, 9]).right.tolist()
    [1, 1]
    """
    p, y = _align(predicted, true)
    ids, place = np.unique(np.asarray(videos, dtype=np.int64), return_inverse=True)
    if len(place) != len(y):
        raise BadData(f"{len(y)} answers but {len(place)} video ids")
    right = np.bincount(place, weights=(p == y).astype(np.float64), minlength=len(ids))
    return ByVideo(ids, right.astype(np.int64), np.bincount(place, minlength=len(ids)))


class Interval(NamedTuple):
    """An estimate with its bootstrap interval.

    Parameters
    ----------
    value
        The estimate.
    low, high
        The ends of the interval.
    """

    value: float
    low: float
    high: float


def bootstrap(
    right: npt.ArrayLike,
    total: npt.ArrayLike,
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Interval:
    """Accuracy with a percentile interval that resamples test videos [V], and runs if [R, V].

    For a paired difference of two learners on the same videos, give the difference of their
    counts as ``right``: each draw then uses the same videos (and runs) for both.

    >>> bootstrap([5, 5], [5, 5])
    Interval(value=1.0, low=1.0, high=1.0)
    """
    hits = np.atleast_2d(np.asarray(right, dtype=np.float64))  # [R, V]
    count = np.asarray(total, dtype=np.float64)
    if hits.ndim != 2 or count.shape != hits.shape[1:] or not hits.size or (count <= 0).any():
        raise BadData(
            f"right {hits.shape} and total {count.shape} must cover the same videos, "
            "each with at least one frame"
        )
    if not 0 < level < 1 or draws < 1:
        raise BadSetting("level lies between 0 and 1, draws is a whole number from 1")
    rng = np.random.default_rng(seed)
    runs, videos = hits.shape
    values = np.empty(draws)
    for d in range(draws):  # a loop keeps memory at V numbers, whatever the number of draws
        v = rng.integers(videos, size=videos)
        r = rng.integers(runs, size=runs) if runs > 1 else np.zeros(1, dtype=np.int64)
        values[d] = hits[r][:, v].sum() / (runs * count[v].sum())
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(hits.sum() / (runs * count.sum())), float(low), float(high))


def _align(predicted: npt.ArrayLike, true: npt.ArrayLike) -> tuple[Ints, Ints]:
    p, y = np.asarray(predicted, dtype=np.int64), np.asarray(true, dtype=np.int64)
    if p.shape != y.shape or p.ndim != 1:
        raise BadData(f"{p.shape} answers do not match {y.shape} true labels")
    if not len(y):
        raise BadData("there are no test frames to be right or wrong about")
    return p, y


def _within(labels: Ints, classes: int) -> None:
    if labels.min() < 0 or labels.max() >= classes:
        raise BadData(f"a label lies outside 0…{classes - 1}")


def _curve(values: Sequence[float], name: str) -> Floats:
    curve = np.asarray(values, dtype=np.float64)
    if curve.ndim != 1 or not len(curve) or np.isnan(curve).any():
        raise BadData(f"{name} must be a list of accuracies, one per test event, at least one")
    return curve


def _before_and_last(table: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Accuracies before the last event [T-1, k] and at it [k], of classes tested in both."""
    a = np.asarray(table, dtype=np.float64)
    if a.ndim != 2 or not a.size:
        raise BadData(f"the table has shape {a.shape}; it needs events as rows, classes as columns")
    known = ~np.isnan(a[:-1]).all(axis=0) & ~np.isnan(a[-1])
    return a[:-1, known], a[-1, known]
