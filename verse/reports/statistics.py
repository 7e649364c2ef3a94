"""Intervals and tests over seeds and test videos.

An interval answers: how far would the figure move with other permutations of the stream and other
test videos? Videos are weighted at random (Bayesian bootstrap: Rubin, 1981), the same way for every
learner and for Offline, so that differences are paired; seeds are drawn with replacement, and their
spread is widened by √(n / (n − 1)), because few draws from few seeds vary too little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from verse.experiments.result import Result

Floats = npt.NDArray[np.float64]
DRAWS = 2000
LEVEL = 0.95


class Estimate(NamedTuple):
    """A mean over runs with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def half(self) -> float:
        """Half the width of the interval, for ±."""
        return (self.high - self.low) / 2

    @property
    def excludes_zero(self) -> bool:
        """The interval lies on one side of zero."""
        return self.low > 0 or self.high < 0


def omega(results: Sequence[Result]) -> Estimate | None:
    """Ω_all, or None where a run has no Offline."""
    drawn = _omegas(results)
    if drawn is None:
        return None
    values = [r.omega_all for r in results]
    return _estimate(drawn, float(np.mean([v for v in values if v is not None])))


def mu(results: Sequence[Result]) -> Estimate:
    """μ_all."""
    return _estimate(_mus(results), float(np.mean([r.mu_all for r in results])))


def difference(
    ours: Sequence[Result], theirs: Sequence[Result], metric: str = "omega"
) -> Estimate | None:
    """Ω_all of ours minus theirs over the seeds both have; μ_all if asked, or without Offline."""
    pairs = paired(ours, theirs)
    if not pairs:
        return None
    a, b = ([pair[i] for pair in pairs] for i in (0, 1))
    drawn_a, drawn_b = (_omegas(a), _omegas(b)) if metric == "omega" else (None, None)
    if drawn_a is not None and drawn_b is not None:
        return _estimate(drawn_a - drawn_b, float(np.mean(scores(a)) - np.mean(scores(b))))
    mean = float(np.mean([r.mu_all for r in a]) - np.mean([r.mu_all for r in b]))
    return _estimate(_mus(a) - _mus(b), mean)


def p_value(ours: Sequence[Result], theirs: Sequence[Result]) -> float | None:
    """Of a paired t-test over the seeds both have; None with fewer than three."""
    pairs = paired(ours, theirs)
    if len(pairs) < 3:
        return None
    d = np.array(scores([a for a, _ in pairs])) - np.array(scores([b for _, b in pairs]))
    spread = float(np.std(d, ddof=1))
    if spread == 0:
        return 1.0 if not d.any() else 0.0
    return student(float(np.mean(d)) / (spread / math.sqrt(len(d))), len(d) - 1)


def student(t: float, freedom: int) -> float:
    """Two-sided p of Student's t for whole degrees of freedom, by the finite sums of its integral.

    >>> round(student(2.776445, 4), 4), round(student(-3.182446, 3), 4)
    (0.05, 0.05)
    """
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    term, total = (1.0, 1.0) if freedom % 2 == 0 else (cosine, cosine)
    for k in range(1 + freedom % 2, freedom - 2, 2):
        term *= cosine**2 * k / (k + 1)
        total += term
    if freedom % 2 == 0:
        inside = sine * total
    else:
        inside = 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    return max(0.0, 1 - inside)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's (1979) correction: p-values that may be read as if each test were the only one.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, highest = [0.0] * len(values), 0.0
    for rank, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[i]))
        corrected[i] = highest
    return corrected


def paired(ours: Sequence[Result], theirs: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Runs of equal seed."""
    other = {result.run.seed: result for result in theirs}
    return [(r, other[r.run.seed]) for r in ours if r.run.seed in other]


def scores(results: Sequence[Result]) -> list[float]:
    """Ω_all of each run, or μ_all of each if one of them has no Offline."""
    omegas = [r.omega_all for r in results]
    known = [value for value in omegas if value is not None]
    return known if len(known) == len(results) else [r.mu_all for r in results]


def _estimate(drawn: Floats, mean: float) -> Estimate:
    """``drawn`` [draws, runs] holds the figure of each run under each weighting of videos."""
    draws, n = drawn.shape
    centre = drawn.mean(1)
    if n > 1:
        random = np.random.default_rng(1)
        counts = random.multinomial(n, np.full(n, 1 / n), size=draws)
        resampled = (drawn * counts).sum(1) / n
        centre = centre + math.sqrt(n / (n - 1)) * (resampled - centre)
    low, high = np.quantile(centre, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(mean, float(low), float(high), n)


def _mus(results: Sequence[Result]) -> Floats:
    return np.asarray(_curves([[event.by_video for event in r.events] for r in results]).mean(2))


def _omegas(results: Sequence[Result]) -> Floats | None:
    if any(not r.offline for r in results):
        return None
    ours = _curves([[event.by_video for event in r.events] for r in results])
    bounds = _curves([[bound.by_video for bound in r.offline] for r in results])
    return np.asarray((ours / np.maximum(bounds, 1e-9)).mean(2))


def _curves(counts: Sequence[Sequence[list[list[int]]]]) -> Floats:
    """α [draws, runs, events] under random weights of the test videos."""
    ids = sorted({row[0] for run in counts for event in run for row in event})
    place = {video: i for i, video in enumerate(ids)}
    right = np.zeros((len(counts), len(counts[0]), len(ids)))
    total = np.zeros_like(right)
    for s, run in enumerate(counts):
        for t, event in enumerate(run):
            for video, hits, frames in event:
                right[s, t, place[video]] = hits
                total[s, t, place[video]] = frames
    # one fixed random stream: every learner of a comparison meets the same weights
    weights = np.random.default_rng(0).exponential(size=(DRAWS, len(ids)))
    shape = (DRAWS, *right.shape[:2])
    flat = [(weights @ part.reshape(-1, len(ids)).T).reshape(shape) for part in (right, total)]
    return np.asarray(flat[0] / np.maximum(flat[1], 1e-12))
