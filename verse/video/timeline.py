"""Answers over time, as few lines as they need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from verse.types import Label, Prediction


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the time line with one answer; ``confidence`` is the mean of its frames.

    Parameters
    ----------
    start, end
        Seconds.
    label
        The answer; None: unknown.
    confidence
        Mean over its frames.
    frames
        How many.

    >>> Span(0.0, 2.5, "mug", 0.9, frames=5).label
    'mug'
    """

    start: float
    end: float
    label: Label | None
    confidence: float
    frames: int


def spans(answers: Iterable[tuple[float, Prediction]]) -> Iterator[Span]:
    """Answers in order of time, those that follow each other with one label as one span.

    A span ends where the next one begins, the last one with its last frame.

    >>> mug, cup = Prediction("mug", {"mug": 0.8}, 1), Prediction("cup", {"cup": 0.6}, 1)
    >>> [(s.start, s.end, s.label) for s in spans([(0, mug), (1, mug), (2, cup), (3, cup)])]
    [(0, 2, 'mug'), (2, 3, 'cup')]
    """
    start, last, label, confidences = 0.0, 0.0, None, list[float]()
    for time, answer in answers:
        if confidences and answer.label != label:
            yield Span(start, time, label, float(np.mean(confidences)), len(confidences))
            confidences.clear()
        if not confidences:
            start, label = time, answer.label
        confidences.append(answer.confidence)
        last = time
    if confidences:
        yield Span(start, last, label, float(np.mean(confidences)), len(confidences))


def clock(seconds: float) -> str:
    """A time for people.

    >>> clock(3723.46), clock(4)
    ('1:02:03.5', '0:04.0')
    """
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}:{minutes:02}" if hours else f"{minutes}"
    return f"{head}:{rest / 10:04.1f}"
