"""Jobs in the queues of a session, each with a future for its answer."""

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
    """Another operation on the classifier, and the events that report its result."""

    act: Callable[[DurableClassifier], Any]
    events: Callable[[Any], list[tuple[str, dict[str, Any]]]]
    answer: Future[Any] = field(default_factory=Future)


@dataclass
class Ask:
    """A picture to answer for."""

    picture: Picture
    answer: Future[Reply] = field(default_factory=Future)
