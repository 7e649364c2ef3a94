"""The only streaming loop: a generator that learns each frame once and tests on a schedule.

Everything that compares methods goes through here; the command line prints its events, trackers
write them down, the store keeps their sum.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from verse import metrics, streams
from verse.kernels.interrupts import defer_interrupt
from verse.learners.base import Learner
from verse.realtime import Camera
from verse.streams import Schedule
from verse.types import BadData, BadState, Refused

Ints = npt.NDArray[np.int64]
BLOCK = 32  # frames fetched ahead
BATCH = 256  # test frames predicted at once; bits depend on it, so it is the same everywhere
UNKNOWN = -1  # the answer of a learner that knows nothing yet


class Rows(Protocol):
    """Features by number: a tensor, or ``verse.features.Features``."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Ints, /) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class Samples:
    """Features with their classes and videos, in the order they are shown.

    Parameters
    ----------
    z
        Features [n, …].
    y
        Classes.
    videos
        Videos.
    index
        Rows of ``z`` that are meant; left out: all.

    >>> import torch
    >>> rows = Samples(torch.zeros(3, 2), np.array([0, 1, 1]), np.array([0, 1, 1]))
    >>> rows.take(np.array([2, 0])).y.tolist()
    [1, 0]
    """

    z: Rows
    y: Ints
    videos: Ints
    index: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if not len(self.index):
            object.__setattr__(self, "index", np.arange(len(self.y)))
        if not len(self.index) == len(self.y) == len(self.videos):
            raise BadData(f"{len(self.y)} labels, {len(self.videos)} videos: they must be parallel")

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, at: Ints) -> Tensor:
        return self.z[self.index[at]]

    def take(self, at: Ints) -> Samples:
        """These samples, in this order."""
        return Samples(self.z, self.y[at], self.videos[at], self.index[at])

    def features(self, start: int, stop: int) -> Tensor:
        """Features [stop - start, …]."""
        return self[np.arange(start, stop)]


@dataclass(frozen=True)
class Learned:
    """A frame was learned: the number of frames so far, and the losses of the learner.

    Parameters
    ----------
    position
        Frames that have passed.
    learned
        Frames that were learned.
    losses
        The learner's latest, by name.
    """

    position: int
    learned: int
    losses: dict[str, float]


@dataclass(frozen=True)
class Tested:
    """One test event: α_t and the counts behind it; frames of unseen classes count as errors.

    Parameters
    ----------
    after
        Frames of the stream so far.
    classes
        Those tested.
    accuracy
        α_t.
    by_class
        [class, right, frames] of each.
    by_video
        [video, right, frames] of each.
    confusion
        [true class, answer, frames]; answer −1: knows nothing yet.
    seconds
        That the test took.
    reachable
        Test frames whose class was shown; None: not recorded.
    """

    __test__ = False  # its name is no test for pytest to collect

    after: int
    classes: list[int]
    accuracy: float
    by_class: list[list[int]]  # [class, right, frames]
    by_video: list[list[int]]  # [video, right, frames]
    confusion: list[list[int]]  # [true class, answer, frames]; answer -1: knows nothing yet
    seconds: float
    reachable: int | None = None  # test frames whose class was shown; None: not recorded


@dataclass
class SoFar:
    """The sum of a stream up to now: with the learner's state, all that going on needs.

    Parameters
    ----------
    position
        Frames that have passed.
    learned
        Frames that were learned.
    refused
        Frames, and consolidations before a test, that were refused.
    first_refusal
        Why.
    missed
        Frames that passed while the learner was busy.
    answered, answered_right
        Predict-then-learn: how many, and how many right.
    learn_seconds
        Spent learning.
    tested
        The test events.
    busy
        The camera's state.
    steady
        False inside a test, when a learner may be half consolidated.

    >>> SoFar.load(SoFar(position=3).document()).position
    3
    """

    position: int = 0
    learned: int = 0
    refused: int = 0  # frames, and consolidations before a test
    first_refusal: str = ""
    missed: int = 0  # frames that passed while the learner was busy
    answered: int = 0  # predict-then-learn
    answered_right: int = 0
    learn_seconds: float = 0.0
    tested: list[Tested] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    steady: bool = True  # false inside a test, when a learner may be half consolidated

    @property
    def alpha(self) -> list[float]:
        """α_t of every event so far."""
        return [event.accuracy for event in self.tested]

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)

    @classmethod
    def load(cls, document: dict[str, Any]) -> SoFar:
        """Back from ``document``."""
        try:
            known = {f.name: document[f.name] for f in fields(cls)}
            return cls(**known | {"tested": [Tested(**event) for event in document["tested"]]})
        except (KeyError, TypeError) as error:
            raise BadState(f"the saved progress of this stream is damaged: {error!r}") from error

    def refuse(self, where: str, reason: Refused) -> None:
        """Count a refused sample; warn about the first one."""
        self.refused += 1
        self.first_refusal = self.first_refusal or f"{where}: {reason}"


@dataclass(frozen=True)
class Finished:
    """The end of the stream.

    Parameters
    ----------
    so_far
        The whole stream.
    """

    so_far: SoFar


Event: TypeAlias = Learned | Tested | Finished


def stream(
    learner: Learner,
    train: Samples,
    test: Samples,
    schedule: Schedule,
    *,
    so_far: SoFar | None = None,
    camera: Camera | None = None,
    step_seconds: float | None = None,
    overhead: float = 0.0,
    prequential: bool = False,
    report: int = 16,
) -> Iterator[Event]:
    """Learn ``train`` once, in its order; test when the schedule says.

    ``so_far`` is updated in place; at every event it and ``learner.state()`` belong together, so a
    consumer may save both and later go on from there. With ``camera`` frames pass while the
    learner is busy: a step costs ``step_seconds`` (None: as measured) plus ``overhead`` (what G
    takes). ``prequential`` also asks about every frame before it is learned.

    >>> import torch
    >>> from verse.backbones import identity
    >>> from verse.learners import FineTune
    >>> y = np.array([0, 0, 1, 1])
    >>> rows = Samples(torch.eye(2)[y], y, y)
    >>> events = stream(FineTune(identity(2).F), rows, rows, Schedule.of("class-iid", y))
    >>> [event.after for event in events if isinstance(event, Tested)]
    [2, 4]
    """
    now = SoFar() if so_far is None else so_far
    selected = _testable(test, schedule)
    if camera is not None:
        camera.load_state(now.busy)
    for number, event in enumerate(schedule.events):
        # where blocks begin follows from the schedule, not from where a run was resumed: features
        # that are computed on the way have bits that depend on the batch
        begin = schedule.events[number - 1].after if number else 0
        for start in range(begin, event.after, BLOCK):
            if start + BLOCK <= now.position or event.after <= now.position:
                continue
            block = train.features(start, min(start + BLOCK, event.after))
            done = max(0, now.position - start)
            for t, z in enumerate(block[done:], start + done):
                with defer_interrupt():  # the sum and the learner change together
                    # storage of its own: bits depend on alignment, which must not on the block
                    _one(
                        learner,
                        z.clone(),
                        int(train.y[t]),
                        t,
                        now,
                        camera,
                        step_seconds,
                        overhead,
                        prequential,
                    )
                if now.position % report == 0 or now.position == event.after:
                    yield Learned(now.position, now.learned, dict(learner.losses))
        if number >= len(now.tested):
            now.steady = False
            shown = np.unique(train.y[: event.after])
            now.tested.append(_run_test(learner, test.take(selected[number]), event, now, shown))
            now.steady = True
            yield now.tested[-1]
    yield Finished(now)


def _one(
    learner: Learner,
    z: Tensor,
    y: int,
    t: int,
    now: SoFar,
    camera: Camera | None,
    step_seconds: float | None,
    overhead: float,
    prequential: bool,
) -> None:
    """One frame passes: asked about, learned, refused or missed."""
    if prequential:
        now.answered += 1
        now.answered_right += learner.predict_one(z) == y
    now.position += 1
    if camera is not None and not camera.offer(t):
        now.missed += 1
        return
    began = time.perf_counter()
    try:
        learner.learn_one(z, y)
        now.learned += 1
    except Refused as refusal:
        now.refuse(f"frame {t}", refusal)
    seconds = time.perf_counter() - began
    now.learn_seconds += seconds
    if camera is not None:
        camera.record((seconds if step_seconds is None else step_seconds) + overhead)
        now.busy = camera.state()


def _testable(test: Samples, schedule: Schedule) -> list[Ints]:
    """The test frames of every event; an event without any would have no accuracy."""
    selected = [event.select(test.y) for event in schedule.events]
    for number, rows in enumerate(selected, 1):
        if not len(rows):
            raise BadData(
                f"test event {number} has no test frames: add test frames for its classes, hold "
                "out more (--holdout), or test after more classes (--every)"
            )
    return selected


def _run_test(
    learner: Learner, test: Samples, event: streams.EvaluationPoint, now: SoFar, shown: Ints
) -> Tested:
    began = time.perf_counter()
    try:
        learner.consolidate()
    except Refused as refusal:  # a fit that diverges, say: the weights of before answer
        now.refuse(f"test after frame {event.after}", refusal)
    answers = predict(learner, test)
    right = answers == test.y
    videos = metrics.by_video(answers, test.y, test.videos)
    classes = metrics.by_video(answers, test.y, test.y)
    pairs, counts = np.unique(np.stack([test.y, answers]), axis=1, return_counts=True)
    return Tested(
        after=event.after,
        classes=list(event.classes),
        accuracy=float(np.mean(right)),
        by_class=np.stack(classes, 1).tolist(),
        by_video=np.stack(videos, 1).tolist(),
        confusion=np.vstack([pairs, counts]).T.tolist(),
        seconds=time.perf_counter() - began,
        reachable=int(np.isin(test.y, shown).sum()),
    )


def predict(learner: Learner, samples: Samples) -> Ints:
    """The answer on every sample, in batches; -1 from a learner that knows nothing yet."""
    answers: list[int] = []
    for start in range(0, len(samples), BATCH):
        batch = samples.features(start, min(start + BATCH, len(samples)))
        answers += [UNKNOWN if a is None else a for a in learner.predict_many(batch)]
    return np.array(answers, dtype=np.int64)
