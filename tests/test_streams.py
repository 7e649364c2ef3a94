from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verse import streams
from verse.streams import EvaluationPoint, Schedule
from verse.types import BadData, BadSetting


@st.composite
def tables(draw):
    """Labels, videos, frames of a small data set in any storage order; ids with gaps."""
    rows = []
    video = 0
    for label in draw(st.lists(st.integers(0, 50), min_size=1, max_size=5, unique=True)):
        for length in draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)):
            video += draw(st.integers(1, 3))
            rows += [(label, video, 2 * t) for t in range(length)]
    rows = draw(st.permutations(rows))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def runs(values):
    return [key for key, _ in itertools.groupby(values.tolist())]


seeds = st.integers(0, 2**63)
every_order = st.sampled_from(streams.names())


@given(every_order, tables(), seeds)
def test_every_order_is_a_permutation_and_repeats(name, table, seed):
    order = streams.order(name, *table, seed)
    assert sorted(order.tolist()) == list(range(len(table[0])))
    assert order.tolist() == streams.order(name, *table, seed).tolist()


@given(st.sampled_from(["class-iid", "class-instance"]), tables(), seeds)
def test_classes_are_contiguous_and_in_class_order(name, table, seed):
    labels = table[0][streams.order(name, *table, seed)]
    assert runs(labels) == streams.class_order(table[0], seed).tolist()


@given(st.sampled_from(["instance", "class-instance"]), tables(), seeds)
def test_videos_are_contiguous_and_in_time(name, table, seed):
    _, videos, frames = table
    order = streams.order(name, *table, seed)
    assert len(runs(videos[order])) == len(set(videos.tolist()))
    for video in np.unique(videos):
        shown = frames[order][videos[order] == video]
        assert (np.diff(shown) > 0).all()


@given(tables(), seeds)
def test_both_class_orders_share_their_classes(table, seed):
    one, other = (
        table[0][streams.order(name, *table, seed)] for name in ("class-iid", "class-instance")
    )
    assert runs(one) == runs(other)


def test_classes_of_equal_size_are_shuffled_differently():
    labels = np.repeat(np.arange(6), 40)
    order = streams.order("class-iid", labels, labels, np.tile(np.arange(40), 6), seed=3)
    inside = [tuple((order[labels[order] == c] % 40).tolist()) for c in range(6)]
    assert len(set(inside)) == 6


def test_videos_of_classes_of_equal_size_are_shuffled_differently():
    videos = np.arange(240)
    labels = videos // 40
    order = streams.order("class-instance", labels, videos, np.zeros(240), seed=3)
    inside = [tuple((order[labels[order] == c] % 40).tolist()) for c in range(6)]
    assert len(set(inside)) == 6


def test_shuffles_are_independent_of_each_other():
    """Adding a class leaves the order inside the others as it was."""
    labels = np.repeat([0, 1, 2], 30)
    frames = np.tile(np.arange(30), 3)
    whole = streams.order("class-iid", labels, labels, frames, seed=1)
    part = streams.order("class-iid", labels[:60], labels[:60], frames[:60], seed=1)
    for c in (0, 1):
        assert whole[labels[whole] == c].tolist() == part[labels[part] == c].tolist()


def test_seeds_give_different_streams():
    orders = {
        tuple(streams.order("iid", np.zeros(20), np.zeros(20), np.arange(20), s)) for s in range(50)
    }
    assert len(orders) == 50


def test_class_orders_are_uniform():
    counts = dict.fromkeys(itertools.permutations(range(3)), 0)
    for seed in range(1200):
        counts[tuple(streams.class_order([0, 1, 2], seed).tolist())] += 1
    assert all(140 < n < 260 for n in counts.values()), counts


@pytest.mark.parametrize(
    ("name", "golden"),
    [
        ("iid", [1, 8, 6, 5, 2, 4, 7, 0, 3]),
        ("class-iid", [5, 4, 6, 8, 7, 0, 2, 1, 3]),
        ("instance", [4, 5, 6, 2, 3, 7, 8, 0, 1]),
        ("class-instance", [4, 5, 6, 7, 8, 0, 1, 2, 3]),
    ],
)
def test_golden(name, golden):
    """Published runs name a seed: these permutations must never change."""
    labels, videos = [0, 0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2, 2, 3, 3]
    frames = [0, 1, 0, 1, 0, 1, 2, 0, 1]
    assert streams.order(name, labels, videos, frames, seed=7).tolist() == golden


def test_what_is_refused():
    with pytest.raises(BadSetting, match="did you mean 'class-iid'"):
        streams.order("class_iid", [0], [0], [0], 0)
    with pytest.raises(BadSetting, match="seed"):
        streams.order("iid", [0], [0], [0], -1)
    with pytest.raises(BadData, match="one length"):
        streams.order("iid", [0, 1], [0], [0], 0)
    assert streams.order("class-instance", [], [], [], 0).tolist() == []


# --- the schedule of test events ---


def test_schedule_after_every_class_and_every_few():
    labels = [4, 4, 1, 1, 1, 0, 2, 2]
    assert Schedule.of("class-instance", labels).events == (
        EvaluationPoint(2, (4,)),
        EvaluationPoint(5, (4, 1)),
        EvaluationPoint(6, (4, 1, 0)),
        EvaluationPoint(8, (4, 1, 0, 2)),
    )
    assert [e.after for e in Schedule.of("class-iid", labels, every=3).events] == [6, 8]
    assert [e.after for e in Schedule.of("class-iid", labels, every=2).events] == [5, 8]
    assert Schedule.of("class-iid", labels, every=99).events == (EvaluationPoint(8, (4, 1, 0, 2)),)


def test_schedule_in_ten_equal_steps_on_all_classes():
    labels = np.tile([2, 0, 1], 10)
    schedule = Schedule.of("iid", labels)
    assert [e.after for e in schedule.events] == [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]
    assert {e.classes for e in schedule.events} == {(0, 1, 2)}
    assert len(Schedule.of("instance", labels, steps=4)) == 4
    assert [e.after for e in Schedule.of("iid", [0, 1, 0]).events] == [1, 2, 3]


@given(every_order, tables(), seeds, st.integers(1, 4))
def test_schedule_ends_with_everything(name, table, seed, every):
    labels = table[0][streams.order(name, *table, seed)]
    events = Schedule.of(name, labels, every=every).events
    assert events[-1].after == len(labels)
    assert set(events[-1].classes) == set(labels.tolist())
    assert all(a.after < b.after for a, b in itertools.pairwise(events))
    if name.startswith("class-"):
        for event in events:
            assert set(event.classes) == set(labels[: event.after].tolist())


def test_schedule_refuses_a_stream_out_of_order():
    with pytest.raises(BadData, match="not a class-iid stream"):
        Schedule.of("class-iid", [0, 1, 0])
    with pytest.raises(BadData, match="empty stream"):
        Schedule.of("iid", [])
    with pytest.raises(BadSetting):
        Schedule.of("class-iid", [0], every=0)
    with pytest.raises(BadSetting, match="no ordering"):
        Schedule.of("sorted", [0])


def test_event_selects_its_test_frames():
    assert EvaluationPoint(1, (2, 0)).select(np.array([0, 1, 2, 2])).tolist() == [0, 2, 3]


def test_a_shorter_stream_is_spread_over_the_whole_one():
    labels = np.repeat([0, 1, 2], 40)
    whole = streams.order("class-instance", labels, labels, np.tile(np.arange(40), 3), seed=1)
    short = streams.shorten(whole, 30)
    assert len(short) == len(set(short.tolist())) == 30
    assert np.array_equal(np.unique(labels[short], return_counts=True)[1], [10, 10, 10])
    places = [whole.tolist().index(i) for i in short]
    assert places == sorted(places)  # the same order
    assert np.array_equal(streams.shorten(whole, 0), whole)
    assert np.array_equal(streams.shorten(whole, 500), whole)
