"""Intervals and tests, against scipy and against what must hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.reports.made import made
from verse.experiments.store import Store
from verse.reports import statistics
from verse.reports.cells import SortedResults

HALF = [1.0, 0.0] * 6  # right on every second of twelve test videos
EVEN = [0.5] * 12  # as good, but equally on all of them


def half(estimate: statistics.Estimate) -> float:
    return (estimate.high - estimate.low) / 2


@pytest.mark.parametrize("df", [1.0, 2.0, 4.5, 90.0])
def test_p_agrees_with_the_interval(df: float) -> None:
    for mean, low, high in ((0.1, 0.0, 0.2), (-0.1, -0.3, 0.0)):
        assert statistics.p_value(mean, low, high, df) == pytest.approx(0.05)
    assert statistics.p_value(0.1, 0.001, 0.2, df) < 0.05 < statistics.p_value(0.1, -0.001, 0.2, df)
    t = 0.1 / (0.15 / stats.t.ppf(0.975, df))  # and is Student's in between
    assert statistics.p_value(0.1, -0.05, 0.25, df) == pytest.approx(2 * stats.t.sf(t, df))


@pytest.mark.parametrize(("videos", "n"), [(12, 3), (100, 3), (24, 10)])
def test_a_difference_of_zero_is_rarely_called_one(videos: int, n: int) -> None:
    """Neither by itself nor, at a tenth of the level, among ten rivals; and a true one is found."""
    random = np.random.default_rng(0)
    weights = random.exponential(size=(400, videos))
    weights /= weights.sum(1, keepdims=True)

    def p(by_video: float, by_seed: float, truth: float = 0.0) -> float:
        each = by_video * np.sqrt(videos) * random.standard_normal(videos)
        runs = truth + each + by_seed * np.sqrt(n) * random.standard_normal((n, 1))
        return statistics._interval(weights @ runs.T, float(runs.mean()), videos).p

    for by_video, by_seed in ((1.0, 0.05), (1.0, 1.0), (0.3, 1.0)):
        found = np.array([p(by_video, by_seed) for _ in range(400)])
        assert np.mean(found < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
        assert np.mean(found < 0.005) < 0.025
    # six standard errors of many videos are found even after correction for ten rivals
    if videos > 50:
        assert np.mean([p(1.0, 0.05, truth=6.0) < 0.005 for _ in range(100)]) > 0.9


def test_holm_never_helps_and_keeps_the_order() -> None:
    raw = [0.001, 0.2, 0.03, 0.04, 0.9]
    corrected = statistics.holm(raw)
    assert all(c >= p for c, p in zip(corrected, raw, strict=True))
    assert np.argsort(corrected, kind="stable").tolist() == np.argsort(raw).tolist()
    assert corrected[0] == pytest.approx(0.005)
    assert statistics.holm([]) == []


def test_an_interval_holds_the_mean_and_shrinks_with_seeds(store: Store) -> None:
    found = SortedResults(store.results())
    (bench,) = found.benches
    runs = found.main(bench)["tinyer"]["class-instance"]
    estimate = statistics.omega(runs)
    assert estimate is not None and estimate.n == 3
    assert estimate.low <= estimate.mean <= estimate.high
    assert estimate.mean == pytest.approx(np.mean([r.omega_all for r in runs]))
    assert statistics.omega(runs) == estimate  # the same draws every time
    # counting the same seeds four times must narrow it: there would be more of them
    more = statistics.mu(runs * 4)
    assert half(more) <= half(statistics.mu(runs))


def test_test_videos_are_resampled_too() -> None:
    """Seeds that agree exactly leave an interval: other test videos would give another figure."""
    seeds = range(5)
    uneven = statistics.mu([made("verse", s, HALF) for s in seeds])
    even = statistics.mu([made("verse", s, EVEN) for s in seeds])
    assert uneven.mean == even.mean == 0.5
    assert half(even) == pytest.approx(0, abs=1e-6)
    # a mean of 12 coins: the interval of the t-test over videos
    error = np.std(HALF, ddof=1) / np.sqrt(12)
    assert half(uneven) == pytest.approx(stats.t.ppf(0.975, 11) * error, rel=0.1)
    fewer = statistics.mu([made("verse", s, HALF[:4]) for s in seeds])
    assert half(fewer) > 1.4 * half(uneven)
    relative = statistics.omega([made("verse", s, HALF, HALF) for s in seeds])
    assert relative is not None and relative.mean == 1.0
    assert half(relative) == pytest.approx(0, abs=1e-6)  # Offline meets the same videos


def test_differences_are_paired_by_video_and_seed() -> None:
    ours = [made("verse", s, [share * 0.9 + 0.1 for share in HALF]) for s in range(5)]
    theirs = [made("tinyer", s, [share * 0.9 for share in HALF]) for s in range(5)]
    alone = [statistics.mu(runs) for runs in (ours, theirs)]
    assert alone[0].low < alone[1].high  # apart they cannot be told apart
    lead = statistics.difference(ours, theirs)
    assert lead is not None
    assert lead.mean == pytest.approx(0.1)
    assert half(lead) < 0.001
    uneven = statistics.difference(ours[:3], theirs[1:])
    assert uneven is not None and uneven.n == 2  # only seeds that both have


def test_an_interval_of_seeds_alone_is_that_of_the_t_test() -> None:
    shares = [0.50, 0.55, 0.61, 0.52, 0.58]
    found = statistics.mu([made("verse", s, [share] * 12) for s, share in enumerate(shares)])
    low, high = stats.t.interval(0.95, 4, np.mean(shares), stats.sem(shares))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * (high - low))


def test_a_contrast_is_the_difference_of_differences() -> None:
    groups = [[made("verse", s, [share] * 3) for s in range(3)] for share in (0.9, 0.6, 0.7, 0.5)]
    found = statistics.contrast(list(zip((1.0, -1.0, -1.0, 1.0), groups, strict=True)), "mu")
    assert found is not None
    assert found.mean == pytest.approx(0.1)
    assert (found.n, found.enough) == (3, True)


def test_a_paired_difference_with_itself_is_nothing(store: Store) -> None:
    found = SortedResults(store.results())
    (bench,) = found.benches
    runs = found.main(bench)["tinyer"]["iid"]
    assert statistics.difference(runs, runs) == (0.0, 0.0, 0.0, 3, 1.0, 2.0)
    assert statistics.difference(runs[:1], runs[1:]) is None
