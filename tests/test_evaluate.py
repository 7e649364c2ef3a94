"""The loop: what it learns, when it tests, what it counts, and where it may be cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from verse.backbones import identity
from verse.evaluate import Finished, Learned, Samples, SoFar, Tested, predict, stream
from verse.learners import FineTune, GDumb, Learner, TinyER, build
from verse.memory import Reservoir
from verse.realtime import Camera
from verse.streams import EvaluationPoint, Schedule
from verse.types import BadData, BadSetting, BadState, Refused


class Spy(FineTune):
    """Writes down what happens to it."""

    def __init__(self) -> None:
        super().__init__(identity(2).F, lr=0.5)
        self.log: list[Any] = []

    def step(self, z: Tensor, y: int) -> None:
        self.log.append(("learn", float(z[0, 0]), self.labels[y], z.data_ptr() % 64))
        super().step(z, y)

    def consolidate(self) -> None:
        self.log.append("consolidate")


def world(y: list[int]) -> Samples:
    labels = np.array(y)
    z = torch.stack([torch.arange(len(y)).float(), torch.tensor(y).float() * 3], 1)
    return Samples(z, labels, np.arange(len(y)) // 2)


TRAIN = world([0, 0, 0, 1, 1, 2])


def events(learner: Learner, every: int = 1, **options: Any) -> list[Any]:
    schedule = Schedule.of("class-iid", TRAIN.y, every=every)
    return list(stream(learner, TRAIN, TRAIN, schedule, **options))


def test_every_frame_is_learned_once_in_order_and_tests_come_when_due() -> None:
    spy = Spy()
    events(spy, every=2)
    assert [entry if entry == "consolidate" else entry[1:3] for entry in spy.log] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (3, 1),
        (4, 1),
        "consolidate",
        (5, 2),
        "consolidate",
    ]
    assert {entry[3] for entry in spy.log if entry != "consolidate"} == {0}  # aligned storage


def test_a_stream_is_in_the_order_of_its_samples() -> None:
    spy = Spy()
    backwards = TRAIN.take(np.arange(6)[::-1])
    list(stream(spy, backwards, TRAIN, Schedule.of("class-iid", backwards.y, every=3)))
    assert [entry[1] for entry in spy.log[:-1]] == [5, 4, 3, 2, 1, 0]


def test_events_have_types_and_end_with_the_sum() -> None:
    found = events(Spy(), report=2)
    assert [type(e) for e in found] == [
        Learned,
        Learned,
        Tested,
        Learned,
        Learned,
        Tested,
        Learned,
        Tested,
        Finished,
    ]
    assert [e.position for e in found if isinstance(e, Learned)] == [2, 3, 4, 5, 6]
    tested = [e for e in found if isinstance(e, Tested)]
    assert [e.classes for e in tested] == [[0], [0, 1], [0, 1, 2]]
    so_far = found[-1].so_far
    assert so_far.alpha == [e.accuracy for e in tested]
    assert (so_far.position, so_far.learned, so_far.refused) == (6, 6, 0)


def test_classes_that_were_never_learned_count_as_errors() -> None:
    schedule = Schedule((EvaluationPoint(2, (0, 1)),))
    (tested,) = (e for e in stream(Spy(), TRAIN, TRAIN, schedule) if isinstance(e, Tested))
    assert tested.accuracy == 3 / 5
    assert tested.by_class == [[0, 3, 3], [1, 0, 2]]
    assert tested.confusion == [[0, 0, 3], [1, 0, 2]]
    assert tested.by_video == [[0, 2, 2], [1, 1, 2], [2, 0, 1]]


def test_a_refused_consolidation_is_counted_and_the_weights_of_before_answer() -> None:
    class Torn(Spy):
        def consolidate(self) -> None:
            raise Refused("it diverged")

    plain, torn = events(Spy()), events(Torn())
    so_far = torn[-1].so_far
    assert (so_far.learned, so_far.refused) == (6, 3)
    assert so_far.first_refusal == "test after frame 3: it diverged"
    assert so_far.alpha == plain[-1].so_far.alpha and so_far.steady


@pytest.mark.parametrize(
    "learner",
    [
        GDumb(identity(2).F, Reservoir(6), lr=1e30, clip=None, mix=0.0, passes=4),
        build("coreset-vcl", identity(2).F, Reservoir(6), epochs=30, lr_var=100.0),
    ],
    ids=lambda learner: learner.name,
)
def test_a_fit_that_diverges_does_not_end_the_stream(learner: Learner) -> None:
    so_far = events(learner)[-1].so_far
    assert so_far.learned == 6 and so_far.refused
    assert "not finite" in so_far.first_refusal and len(so_far.tested) == 3


def test_what_is_no_sum_of_a_stream_is_told() -> None:
    for wrong in ({}, SoFar().document() | {"tested": [{"after": 3}]}):
        with pytest.raises(BadState, match="the saved progress of this stream is damaged"):
            SoFar.load(wrong)


def test_a_learner_that_knows_nothing_is_always_wrong() -> None:
    assert predict(Spy(), TRAIN).tolist() == [-1] * 6


def test_a_test_without_frames_is_refused_before_learning() -> None:
    spy = Spy()
    only_two = TRAIN.take(np.array([5]))
    with pytest.raises(BadData, match="test event 1 has no test frames"):
        list(stream(spy, TRAIN, only_two, Schedule.of("class-iid", TRAIN.y)))
    assert spy.log == []


def test_prequential_asks_before_it_learns() -> None:
    so_far = SoFar()
    events(Spy(), so_far=so_far, prequential=True)
    assert so_far.answered == 6
    assert so_far.answered_right < 6  # the first frame of each class cannot be known


def test_samples_must_be_parallel() -> None:
    with pytest.raises(BadData, match="parallel"):
        Samples(torch.zeros(2, 2), np.array([0, 1]), np.array([0]))


@settings(max_examples=20, deadline=None)
@given(cut=st.integers(0, 14), report=st.integers(1, 4))
def test_cut_at_any_event_and_going_on_is_the_same(cut: int, report: int) -> None:
    def build() -> TinyER:
        return TinyER(identity(2).F, Reservoir(3), lr=0.3, C=2, seed=1)

    whole = build()
    expected = events(whole, report=report)[-1].so_far

    first, so_far = build(), SoFar()
    schedule = Schedule.of("class-iid", TRAIN.y)
    for number, _ in enumerate(stream(first, TRAIN, TRAIN, schedule, so_far=so_far, report=report)):
        if number >= cut:
            break
    second, rest = build(), SoFar.load(so_far.document())
    second.load_state({k: v.clone() for k, v in first.state().items()})
    list(stream(second, TRAIN, TRAIN, schedule, so_far=rest, report=report))
    assert rest.alpha == expected.alpha
    for name, tensor in whole.state().items():
        assert torch.equal(tensor, second.state()[name]), name


def test_a_camera_drops_what_finds_the_learner_busy() -> None:
    camera = Camera(fps=10)
    taken = []
    for i in range(7):
        if camera.offer(i):
            camera.record(0.25)
            taken.append(i)
    assert taken == [0, 3, 6]


def test_a_queue_lets_frames_wait() -> None:
    camera = Camera(fps=10, queue=1)
    taken = []
    for i in range(8):
        if camera.offer(i):
            camera.record(0.25)
            taken.append(i)
    # 0 runs until .25, 1 waits until .5, 2 finds both places taken, …
    assert taken == [0, 1, 3, 5]


def test_a_camera_needs_a_rate() -> None:
    for bad in (0, -1, float("inf"), float("nan")):
        with pytest.raises(BadSetting):
            Camera(fps=bad)
    with pytest.raises(BadSetting):
        Camera(fps=1, queue=-1)


def test_missed_frames_are_not_learned_but_the_tests_come_anyway() -> None:
    spy, so_far = Spy(), SoFar()
    found = events(spy, so_far=so_far, camera=Camera(fps=10), step_seconds=0.15)
    assert [e[1] for e in spy.log if e != "consolidate"] == [0, 2, 4]
    assert (so_far.learned, so_far.missed) == (3, 3)
    assert [e.after for e in found if isinstance(e, Tested)] == [3, 5, 6]


class Batched:
    """Features whose bits depend on the batch they come in, as those computed on the way do."""

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: Any) -> Tensor:
        place = torch.arange(len(index)) / 1000
        return torch.stack([torch.from_numpy(index) + place, torch.ones(len(index))], 1)


@pytest.mark.parametrize("stop", [5, 32, 40, 50, 63, 99])
def test_what_a_resumed_stream_reads_does_not_depend_on_where_it_stopped(stop: int) -> None:
    y = np.repeat([0, 1], 50)
    rows, schedule = Samples(Batched(), y, y), Schedule.of("class-iid", y)
    whole, first, rest = Spy(), Spy(), Spy()
    list(stream(whole, rows, rows, schedule))
    so_far = SoFar()
    for event in stream(first, rows, rows, schedule, so_far=so_far, report=1):
        if isinstance(event, Learned) and event.position == stop:
            break
    list(stream(rest, rows, rows, schedule, so_far=so_far))
    learned = [[e[1] for e in spy.log if e != "consolidate"] for spy in (first, rest, whole)]
    assert learned[0] + learned[1] == learned[2]
