"""Intervals and tests, against scipy and against what must hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from verse.experiments.store import Store
from verse.reports import statistics
from verse.reports.cells import Sorted


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 20])
@pytest.mark.parametrize("t", [0.0, 0.3, -1.0, 2.5, 8.0])
def test_student_is_scipys(t: float, freedom: int) -> None:
    assert statistics.student(t, freedom) == pytest.approx(
        2 * stats.t.sf(abs(t), freedom), abs=1e-9
    )


def test_holm_never_helps_and_keeps_the_order() -> None:
    raw = [0.001, 0.2, 0.03, 0.04, 0.9]
    corrected = statistics.holm(raw)
    assert all(c >= p for c, p in zip(corrected, raw, strict=True))
    assert np.argsort(corrected, kind="stable").tolist() == np.argsort(raw).tolist()
    assert corrected[0] == pytest.approx(0.005)
    assert statistics.holm([]) == []


def test_an_interval_holds_the_mean_and_shrinks_with_seeds(store: Store) -> None:
    found = Sorted(store.results())
    (bench,) = found.benches
    runs = found.main(bench)["tinyer"]["class-instance"]
    estimate = statistics.omega(runs)
    assert estimate is not None and estimate.n == 3
    assert estimate.low <= estimate.mean <= estimate.high
    assert estimate.mean == pytest.approx(np.mean([r.omega_all for r in runs]))
    assert statistics.omega(runs) == estimate  # the same draws every time
    # counting the same seeds four times must narrow it: there would be more of them
    more = statistics.mu(runs * 4)
    assert more.half <= statistics.mu(runs).half


def test_a_paired_difference_with_itself_is_nothing(store: Store) -> None:
    found = Sorted(store.results())
    (bench,) = found.benches
    runs = found.main(bench)["tinyer"]["iid"]
    assert statistics.difference(runs, runs) == (0.0, 0.0, 0.0, 3)
    assert statistics.p_value(runs, runs) == 1.0
    assert statistics.p_value(runs[:2], runs) is None
    assert statistics.difference(runs[:1], runs[1:]) is None


def test_p_is_that_of_a_paired_t_test(store: Store) -> None:
    found = Sorted(store.results())
    (bench,) = found.benches
    cells = found.main(bench)
    a, b = cells["ncm"]["class-instance"], cells["verse"]["class-instance"]
    expected = stats.ttest_rel(statistics.scores(a), statistics.scores(b)).pvalue
    assert statistics.p_value(a, b) == pytest.approx(expected)
