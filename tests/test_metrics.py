from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verse import metrics
from verse.types import BadData, BadSetting

nan = float("nan")


def test_accuracy_mu_and_final():
    assert metrics.accuracy([1, 2, 3, 3], [1, 2, 3, 0]) == 0.75
    assert metrics.mu_all([1.0, 0.8, 0.6]) == pytest.approx(0.8)
    assert metrics.final_accuracy([1.0, 0.8, 0.6]) == 0.6


def test_omega_by_hand_and_unclipped():
    # (0.9/1.0 + 0.6/0.8 + 0.5/0.5) / 3 = (0.9 + 0.75 + 1.0) / 3
    assert metrics.omega_all([0.9, 0.6, 0.5], [1.0, 0.8, 0.5]) == pytest.approx(2.65 / 3)
    assert metrics.omega_all([1.0], [0.5]) == 2.0


def test_misaligned_events_raise():
    with pytest.raises(BadData, match="2 test events of the learner and 3 of Offline"):
        metrics.omega_all([0.5, 0.5], [1.0, 1.0, 1.0])
    with pytest.raises(BadData, match="accuracy 0 at event 2"):
        metrics.omega_all([0.5, 0.5], [1.0, 0.0])
    for bad in ([], [nan], [[0.5]]):
        with pytest.raises(BadData):
            metrics.mu_all(bad)
    with pytest.raises(BadData, match="do not match"):
        metrics.accuracy([1], [1, 2])
    with pytest.raises(BadData, match="no test frames"):
        metrics.accuracy([], [])


def test_per_class_and_confusion():
    predicted, true = [0, 0, 1, 2, 2, 0], [0, 0, 0, 2, 1, 1]
    np.testing.assert_allclose(metrics.per_class(predicted, true, 4), [2 / 3, 0, 1, nan])
    assert metrics.confusion(predicted, true, 3).tolist() == [[2, 1, 0], [1, 0, 1], [0, 0, 1]]
    with pytest.raises(BadData, match=r"0…1"):
        metrics.confusion([0, 1], [0, 2], 2)
    with pytest.raises(BadData):
        metrics.confusion([-1], [0], 2)


def test_forgetting_and_backward_transfer_by_hand():
    table = [[0.8, nan, nan], [0.9, 0.6, nan], [0.5, 0.7, 1.0]]
    # class 0: best before 0.9, now 0.5; class 1: best before 0.6, now 0.7; class 2 is new
    assert metrics.forgetting(table) == pytest.approx((0.4 - 0.1) / 2)
    # class 0: 0.5 − 0.8; class 1: 0.7 − 0.6
    assert metrics.backward_transfer(table) == pytest.approx((-0.3 + 0.1) / 2)


def test_forgetting_with_one_event_or_an_untested_class():
    assert metrics.forgetting([[0.5, 0.5]]) == 0.0
    assert metrics.backward_transfer([[0.5, 0.5]]) == 0.0
    assert metrics.forgetting([[1.0, nan], [0.5, nan]]) == 0.5
    with pytest.raises(BadData, match="events as rows"):
        metrics.forgetting([0.5])


def test_prequential():
    correct = [0, 1, 1, 1, 0]
    np.testing.assert_allclose(metrics.prequential(correct), [0, 1 / 2, 2 / 3, 3 / 4, 3 / 5])
    np.testing.assert_allclose(metrics.prequential(correct, window=2), [0, 0.5, 1, 1, 0.5])
    np.testing.assert_allclose(
        metrics.prequential(correct, window=99), metrics.prequential(correct)
    )
    with pytest.raises(BadData):
        metrics.prequential([])
    with pytest.raises(BadSetting):
        metrics.prequential([1], window=0)


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 10))
def test_prequential_window_is_a_mean(correct, window):
    expected = [np.mean(correct[max(0, i + 1 - window) : i + 1]) for i in range(len(correct))]
    np.testing.assert_allclose(metrics.prequential(correct, window), expected, atol=1e-12)


def test_by_video():
    counts = metrics.by_video([0, 1, 1, 0], [0, 1, 0, 0], [9, 4, 4, 9])
    assert counts.videos.tolist() == [4, 9]
    assert counts.right.tolist() == [1, 2]
    assert counts.total.tolist() == [2, 2]
    with pytest.raises(BadData, match="video ids"):
        metrics.by_video([0], [0], [1, 2])


def test_bootstrap_resamples_videos():
    right, total = np.array([10] * 10 + [0] * 10), np.full(20, 10)
    interval = metrics.bootstrap(right, total)
    # The mean of 20 coins: standard error √(0.25/20) = 0.112, so about 0.5 ± 0.22.
    assert interval.value == 0.5
    assert interval.low == pytest.approx(0.28, abs=0.04)
    assert interval.high == pytest.approx(0.72, abs=0.04)
    assert interval == metrics.bootstrap(right, total)
    narrow = metrics.bootstrap(right, total, level=0.5)
    assert interval.low < narrow.low < 0.5 < narrow.high < interval.high


def test_bootstrap_resamples_runs_too_and_pairs_differences():
    total = np.full(8, 10)
    runs = np.array([[9] * 8, [5] * 8])  # no spread between videos, much between runs
    interval = metrics.bootstrap(runs, total)
    assert (interval.value, interval.low, interval.high) == (0.7, 0.5, 0.9)
    a, b = np.array([10, 2, 7, 5]), np.array([9, 1, 6, 4])  # always one better
    paired = metrics.bootstrap(a - b, np.full(4, 10))
    assert (paired.low, paired.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_bootstrap_refuses():
    with pytest.raises(BadData):
        metrics.bootstrap([1, 2], [1])
    with pytest.raises(BadData):
        metrics.bootstrap([1, 0], [1, 0])
    with pytest.raises(BadSetting):
        metrics.bootstrap([1], [1], level=1.0)


def test_calibration_error_is_what_confidence_promises_too_much_or_too_little() -> None:
    assert metrics.calibration_error([0.75] * 4, [True, True, True, False]) == pytest.approx(0)
    assert metrics.calibration_error([1.0] * 4, [True, True, False, False]) == pytest.approx(0.5)
    # too sure in one bin does not make up for too modest in another
    assert metrics.calibration_error([1.0, 0.2], [False, True]) == pytest.approx(0.9)
    for bad in (([0.5], []), ([], []), ([1.5], [True])):
        with pytest.raises(BadData):
            metrics.calibration_error(*bad)
