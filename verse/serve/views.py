"""What others may know of a classifier at work: made by the writer, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from verse.durable import DurableClassifier
from verse.serve.labels import escape_label
from verse.serve.progress import Prequential
from verse.types import Answer, Label


@dataclass(frozen=True)
class LessonResult:
    """What became of a taught image."""

    seq: int
    label: Label
    samples: int
    classes: int
    guess: Label | None = None
    correct: bool | None = None

    def document(self) -> dict[str, Any]:
        """The JSON document of the service."""
        return {
            "seq": self.seq,
            "label": escape_label(self.label),
            "samples": self.samples,
            "classes": self.classes,
            "prequential": {
                "label": None if self.guess is None else escape_label(self.guess),
                "correct": self.correct,
            },
        }


@dataclass(frozen=True)
class Reply:
    """What a picture shows, and its feature."""

    answer: Answer
    z: Tensor


@dataclass(frozen=True)
class ClassView:
    """One class as the page shows it."""

    label: Label
    taught: int
    remembered: int
    thumbnails: tuple[int, ...]


@dataclass(frozen=True)
class View:
    """All of it at one moment."""

    samples: int = 0
    classes: tuple[ClassView, ...] = ()
    memory_samples: int = 0
    memory_limit: int = 0
    memory_bytes: int = 0
    accuracy: float | None = None
    points: tuple[tuple[int, float], ...] = ()
    last: dict[str, Any] | None = None
    """Number and label of the newest sample that can be undone."""

    @classmethod
    def of(
        cls,
        classifier: DurableClassifier,
        thumbnails: Mapping[int, tuple[Label, bytes]],
        prequential: Prequential,
    ) -> View:
        """The current state; called by the thread that owns the classifier."""
        memory, remembered = classifier.learner.memory, classifier.memory_counts()
        last = classifier.undoable[-1:]
        shown: dict[Label, list[int]] = {}
        for seq, (label, _) in thumbnails.items():
            shown.setdefault(label, []).append(seq)
        return cls(
            samples=classifier.samples,
            classes=tuple(
                ClassView(
                    label,
                    classifier.taught.get(label, 0),
                    remembered.get(label, 0),
                    tuple(shown.get(label, ())),
                )
                for label in classifier.classes
            ),
            memory_samples=len(memory) if memory is not None else 0,
            memory_limit=memory.limit if memory is not None else 0,
            memory_bytes=len(memory) * memory.item_bytes if memory is not None else 0,
            accuracy=prequential.accuracy,
            points=tuple(prequential.points),
            last={"seq": last[0], "label": thumbnails.get(last[0], (None,))[0]} if last else None,
        )
