"""Intervals and tests over seeds and test videos.

An interval answers: how far would the figure move with other permutations of the stream and other
test videos? Videos are weighted at random (Bayesian bootstrap: Rubin, 1981), the same way for every
learner and for Offline, so that differences are paired. Under each weighting the mean over n seeds
moves by a draw of Student's t with n − 1 degrees of freedom times its standard error: were videos
certain, this would be the interval of the t-test. Few seeds give wide intervals, and so do few
videos, whose random weights alone would move the figure too little.

A p-value follows Student's t, too, with the degrees of freedom of both sources together
(Satterthwaite, 1946): many videos are not as uncertain as few seeds. A simulation in the tests
checks how often a difference of zero is called one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from verse.experiments.result import Bound, Result
from verse.extras import OptionalImport
from verse.reports.tables import Text, format_signed

with OptionalImport():
    from scipy import stats

Floats = npt.NDArray[np.float64]
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
DRAWS = 2000
LEVEL = 0.95
ENOUGH = 3
"""With fewer seeds in common nobody is first and no claim is decided."""


class Estimate(NamedTuple):
    """A mean over n seeds with its 95 % interval, the p of its being zero, and the degrees of
    freedom of both."""

    mean: float
    low: float
    high: float
    n: int
    p: float = float("nan")
    freedom: float = float("nan")

    def __str__(self) -> str:
        """For tables: an interval need not lie evenly about its mean."""
        return interval(self.mean, self.low, self.high)

    @property
    def record(self) -> dict[str, float | None]:
        """The figure and its interval, for JSON and CSV."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "n": self.n}

    @property
    def signed(self) -> str:
        """For tables: a difference and its interval."""
        mean, low, high = (format_signed(value) for value in self[:3])
        return f"{mean} ({low} … {high})"

    @property
    def beyond_chance(self) -> bool:
        """The interval of a difference excludes zero."""
        return self.low > 0 or self.high < 0

    @property
    def enough(self) -> bool:
        """It stands on enough seeds to decide something."""
        return self.n >= ENOUGH


def difference_cell(difference: Estimate | None) -> Text:
    """A difference in a table: bold where it is beyond chance, a dash where there is none.

    >>> difference_cell(Estimate(0.1, 0.05, 0.15, 5))
    Text(text='+0.100 (+0.050 … +0.150)', bold=True, link='')
    """
    if difference is None:
        return Text("–")
    return Text(difference.signed, difference.beyond_chance)


def interval(mean: float, low: float, high: float) -> str:
    """A mean and its interval, as tables write them.

    >>> interval(0.97, 0.931, 0.997)
    '0.970 (0.931–0.997)'
    """
    return f"{mean:.3f} ({low:.3f}–{high:.3f})"


def metric(*groups: Sequence[Result]) -> str:
    """The measure for a whole comparison: "omega" where every run has its Offline, else "mu"."""
    return "omega" if all(r.offline for runs in groups for r in runs) else "mu"


def omega(results: Sequence[Result]) -> Estimate | None:
    """Ω_all over the runs that have a reference; None without any."""
    bounded = [r for r in results if r.offline]
    return _estimate(bounded, "omega") if bounded else None


def paper_omega(results: Sequence[Result]) -> Estimate | None:
    """Ω against Offline trained by SGD, as the paper has it; over the runs that have one."""
    bounded = [r for r in results if r.offline]
    return _estimate(bounded, "paper") if bounded else None


def mu(results: Sequence[Result]) -> Estimate:
    """μ_all; no accuracy lies outside 0 … 1, so neither does its interval."""
    e = _estimate(results, "mu")
    return e._replace(low=max(0.0, e.low), high=min(1.0, e.high))


def final(results: Sequence[Result]) -> Estimate:
    """Accuracy at the last test event; within 0 … 1, as μ_all."""
    e = _estimate(results, "final")
    return e._replace(low=max(0.0, e.low), high=min(1.0, e.high))


def score(result: Result, measure: str) -> float:
    """Ω_all ("omega"), the paper's Ω ("paper"), accuracy at the end ("final") or μ_all ("mu")."""
    if measure == "final":
        return result.alpha[-1]
    value = {"omega": result.omega_all, "paper": result.omega_paper}.get(measure, result.mu_all)
    assert value is not None  # ``metric`` has chosen the measure
    return value


def difference(
    ours: Sequence[Result], theirs: Sequence[Result], measure: str | None = None
) -> Estimate | None:
    """Ours minus theirs over the seeds both have, None without any; Ω_all if all have Offline."""
    return contrast([(1.0, ours), (-1.0, theirs)], measure)


def paired_differences(
    pairs: Mapping[K, tuple[Sequence[Result], Sequence[Result]]], measure: str
) -> dict[K, Estimate]:
    """The first of each pair minus the second, with Holm's correction over all of them; of those
    with enough common seeds."""
    found = {key: difference(ours, theirs, measure) for key, (ours, theirs) in pairs.items()}
    return adjust({key: e for key, e in found.items() if e is not None and e.enough})


def contrast(
    parts: Sequence[tuple[float, Sequence[Result]]],
    measure: str | None = None,
    constant: float = 0.0,
) -> Estimate | None:
    """Constant + Σ weight · figure over the seeds that all parts have, under the same weights of
    videos.

    With weights 1 and −1 it is a difference; with more parts, for example, the difference of gains.
    """
    seeds = common(*(runs for _, runs in parts))
    if not seeds:
        return None
    measure = measure or metric(*(runs for _, runs in parts))
    drawn = np.full((DRAWS, len(seeds)), constant)
    mean = constant
    for weight, runs in parts:
        by = {r.run.seed: r for r in runs}
        drawn += weight * np.stack([_resample(by[seed], measure) for seed in seeds], 1)
        mean += weight * float(np.mean([score(by[seed], measure) for seed in seeds]))
    return _interval(drawn, mean, _videos(parts[0][1]))


def estimate_mean(values: Sequence[float]) -> Estimate:
    """A mean over seeds alone.

    >>> estimate_mean([1.0, 1.0, 1.0])
    Estimate(mean=1.0, low=1.0, high=1.0, n=3, p=0.0, freedom=2.0)
    """
    drawn = np.tile(np.asarray(values, dtype=np.float64), (DRAWS, 1))
    return _interval(drawn, float(np.mean(values)))


def common(*groups: Sequence[Result]) -> list[int]:
    """The seeds that all groups have."""
    return sorted(set.intersection(*({r.run.seed for r in runs} for runs in groups)))


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


def adjust(estimates: Mapping[K, Estimate]) -> dict[K, Estimate]:
    """Holm's correction of several estimates: of p, and of the interval, which is widened so that
    it still excludes zero where, and only where, p is below 0.05.

    >>> one = Estimate(2.0, 0.5, 3.5, 5, p_value(2.0, 0.5, 3.5, 4.0), 4.0)
    >>> adjust({"a": one}) == {"a": one}, round(one.p, 3)
    (True, 0.021)
    >>> [(round(e.p, 3), e.low > 0) for e in adjust(dict.fromkeys("abc", one)).values()][0]
    (0.062, False)
    """
    corrected = holm([e.p for e in estimates.values()])
    return {key: _widen(e, p) for (key, e), p in zip(estimates.items(), corrected, strict=True)}


def _widen(e: Estimate, p: float) -> Estimate:
    if not e.freedom > 0 or not 0 < e.p < p:
        return e._replace(p=p)
    usual, wider = (stats.t.ppf(1 - (1 - LEVEL) / 2 / times, e.freedom) for times in (1, p / e.p))
    low, high = (e.mean + (end - e.mean) * float(wider / usual) for end in (e.low, e.high))
    return e._replace(low=low, high=high, p=p)


def _estimate(results: Sequence[Result], measure: str) -> Estimate:
    drawn = np.stack([_resample(r, measure) for r in results], 1)
    mean = float(np.mean([score(r, measure) for r in results]))
    return _interval(drawn, mean, _videos(results))


def _videos(results: Sequence[Result]) -> int:
    """How many test videos there are: the last test has them all."""
    return max((len(r.events[-1].by_video) for r in results if r.events), default=0)


def _interval(drawn: Floats, mean: float, videos: int = 0) -> Estimate:
    """``drawn`` [draws, runs] holds the figure of each run under each weighting of videos."""
    draws, n = drawn.shape
    centre = drawn.mean(1)
    by_video = by_seed = 0.0
    if videos > 1:
        # random weights spread the mean by 1 / √(V + 1) instead of 1 / √(V − 1) of the spread of
        # videos, and about as a normal distribution does instead of Student's t
        spread = math.sqrt((videos + 1) / (videos - 1))
        tail = stats.t.ppf((1 + LEVEL) / 2, videos - 1) / stats.norm.ppf((1 + LEVEL) / 2)
        by_video = float(centre.var(ddof=1)) * spread**2
        centre = centre.mean() + (centre - centre.mean()) * spread * float(tail)
    if n > 1:
        error = drawn.std(1, ddof=1) / math.sqrt(n)
        by_seed = float((error**2).mean())
        centre = centre + np.random.default_rng(1).standard_t(n - 1, size=draws) * error
    low, high = (float(end) for end in np.quantile(centre, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    freedom = degrees_of_freedom((by_seed, n), (by_video, videos))
    return Estimate(mean, low, high, n, p_value(mean, low, high, freedom), freedom)


def degrees_of_freedom(seeds: tuple[float, int], videos: tuple[float, int]) -> float:
    """Of a mean whose variance has two sources, each (variance, number): at least those of fewer,
    at most those of both together. 0 with one seed: it says nothing about others.

    >>> degrees_of_freedom((1.0, 3), (0.0, 50)), degrees_of_freedom((1.0, 3), (1.0, 3))
    (2.0, 4.0)
    """
    if seeds[1] < 2:
        return 0.0
    sources = [(variance, n) for variance, n in (seeds, videos) if variance > 0 and n > 1]
    if not sources:
        return seeds[1] - 1.0
    whole = sum(variance for variance, _ in sources)
    return float(whole**2 / sum(variance**2 / (n - 1) for variance, n in sources))


def p_value(mean: float, low: float, high: float, freedom: float) -> float:
    """Two-sided p-value of the hypothesis that the mean is zero. It agrees with the interval: it is
    below 0.05 exactly if the interval excludes zero. Otherwise it follows Student's t.

    >>> round(p_value(2.0, 0.0, 4.0, 4.0), 3)
    0.05
    >>> p_value(2.0, 1.0, 3.0, 4.0) < 0.05 < p_value(2.0, -1.0, 5.0, 4.0)
    True
    """
    if mean == 0 or not freedom > 0:
        return 1.0
    reach = mean - low if mean > 0 else high - mean
    if reach <= 0:
        return 0.0
    scale = reach / stats.t.ppf((1 + LEVEL) / 2, freedom)
    return float(2 * stats.t.sf(abs(mean) / scale, freedom))


class _Same(Generic[T]):
    """A run, or its bounds, as a key: by identity, for comparing their counts is slow."""

    def __init__(self, value: T) -> None:
        self.value = value  # kept alive, so that no other one gets its identity

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


def _resample(result: Result, measure: str) -> Floats:
    """The figure of one run under each weighting of videos [draws]."""
    return np.asarray(_curve(_Same(result))[measure], dtype=np.float64)


@lru_cache(maxsize=8192)
def _curve(key: _Same[Result]) -> dict[str, npt.NDArray[np.float32]]:
    """Measure → its figure [draws]; without Offline there is no Ω."""
    alpha = _accuracies([event.by_video for event in key.value.events])
    found = {"mu": alpha.mean(1).astype(np.float32), "final": alpha[:, -1].astype(np.float32)}
    for measure, accuracies in _references(_Same(key.value.offline)).items():
        if accuracies.shape == alpha.shape:
            omegas = (alpha / np.maximum(accuracies, 1e-9)).mean(1)
            found[measure] = omegas.astype(np.float32)
    return found


@lru_cache(maxsize=256)
def _references(key: _Same[Sequence[Bound]]) -> dict[str, Floats]:
    """Measure → the α of Offline [draws, events] that it divides by; many runs share one."""
    return {
        "omega": _accuracies([b.best_by_video or b.by_video for b in key.value]),
        "paper": _accuracies([b.by_video for b in key.value]),
    }


def _accuracies(events: Sequence[Sequence[Sequence[int]]]) -> Floats:
    """α [draws, events] under random weights of the test videos; rows: video, right, frames."""
    rows = [np.array(event, dtype=np.int64).reshape(-1, 3) for event in events]
    videos = np.unique(np.concatenate([row[:, 0] for row in rows])) if rows else np.empty(0)
    if not len(videos):
        return np.empty((DRAWS, 0))
    counts = np.zeros((2, len(events), len(videos)))
    for t, row in enumerate(rows):
        counts[:, t, np.searchsorted(videos, row[:, 0])] = row[:, 1:].T
    weights = _weights_of(tuple(videos.tolist()))
    right, total = (weights @ part.T for part in counts)
    return np.asarray(right / np.maximum(total, 1e-12))


@lru_cache(maxsize=64)
def _weights_of(videos: tuple[int, ...]) -> Floats:
    """Of several test videos [draws, videos]."""
    return np.stack([_weights(video) for video in videos], 1)


@lru_cache(maxsize=8192)
def _weights(video: int) -> Floats:
    """Of one test video [draws]: its own fixed random stream, so that everybody meets the same."""
    return np.random.default_rng([0, video % 2**63]).exponential(size=DRAWS)
