"""What waits in the queues of a session, each with the place where its answer will be."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from verse.durable import DurableClassifier
from verse.serve.views import Learned
from verse.types import Label, Prediction


@dataclass
class Teach:
    """An image to learn."""

    image: bytes
    label: Label
    key: str | None
    answer: Future[Learned] = field(default_factory=Future)


@dataclass
class Change:
    """Something else to do with the classifier, and what listeners hear of its result."""

    act: Callable[[DurableClassifier], Any]
    event: Callable[[Any], tuple[str, dict[str, Any]]]
    answer: Future[Any] = field(default_factory=Future)


@dataclass
class Ask:
    """An image to answer for."""

    image: bytes
    answer: Future[Prediction] = field(default_factory=Future)
