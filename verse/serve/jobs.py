"""What waits in the queues of a session, each with the place where its answer will be."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from verse.durable import DurableClassifier
from verse.serve.pictures import AnsweredFrame, Picture
from verse.serve.views import LessonResult, Reply
from verse.types import Label


@dataclass
class Teach:
    """A picture to learn, or a frame that was asked about."""

    sample: Picture | AnsweredFrame
    label: Label
    key: str | None
    answer: Future[LessonResult] = field(default_factory=Future)


@dataclass
class Change:
    """Something else to do with the classifier, and the events that tell of its result."""

    act: Callable[[DurableClassifier], Any]
    events: Callable[[Any], list[tuple[str, dict[str, Any]]]]
    answer: Future[Any] = field(default_factory=Future)


@dataclass
class Ask:
    """A picture to answer for."""

    picture: Picture
    answer: Future[Reply] = field(default_factory=Future)
