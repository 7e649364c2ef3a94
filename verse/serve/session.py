"""One classifier, two threads: a writer that owns it and learns, a predictor that answers.

Requests of both kinds wait in bounded queues; a full one refuses at once (``Busy``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import torch

from verse.durable import DurableClassifier
from verse.serve.errors import Closing
from verse.serve.jobs import Ask, Change, Teach
from verse.serve.labels import escape_label, find_label
from verse.serve.pictures import AnsweredFrame, Picture
from verse.serve.progress import EventRate
from verse.serve.snapshot import PublishedState
from verse.serve.undo import undo_last, undo_samples
from verse.serve.views import LessonResult, Reply, View
from verse.serve.workers.predictor import Predictor
from verse.serve.workers.writer import Writer
from verse.types import Label, VerseError

Listener = Callable[[str, dict[str, Any]], None]


class Session:
    """A durable classifier at work.

    ``limit`` bounds each queue.

    >>> import tempfile, verse
    >>> import numpy as np
    >>> session = Session(verse.open(tempfile.mkdtemp(), weights="random"))
    >>> red = np.full((64, 64, 3), (200, 0, 0), np.uint8)
    >>> picture = Picture(session.classifier.backbone.G.preprocess(red), red, b"")
    >>> session.start()
    >>> session.learn(picture, "red").result().seq
    1
    >>> session.predict(picture).result().answer.nearest
    'red'
    >>> session.close()
    """

    def __init__(self, classifier: DurableClassifier, *, limit: int = 64) -> None:
        self.classifier, self.limit = classifier, limit
        self.closing = False
        self._listeners: list[Listener] = []
        _warm(classifier)
        published = PublishedState(classifier)
        self.writer = Writer(classifier, published, limit=limit, tell=self._tell)
        self._predictor = Predictor(classifier, published, limit=limit)

    def start(self) -> None:
        self.writer.worker.start()
        self._predictor.worker.start()

    def close(self) -> None:
        """Refuse what comes, finish what waits, checkpoint, release the directory."""
        if self.closing:
            return
        self.closing = True
        self._predictor.worker.stop()
        self.writer.close()

    def listen(self, listener: Listener) -> None:
        """``listener(type, data)`` hears of every change, in the writer's thread."""
        self._listeners.append(listener)

    # ---- what anybody may look at, from any thread ------------------------------------------

    @property
    def ready(self) -> bool:
        return not self.closing and self.writer.worker.alive and self._predictor.worker.alive

    @property
    def waiting(self) -> int:
        """Lessons in the queue."""
        return self.writer.worker.waiting

    @property
    def view(self) -> View:
        """What is known of the classifier, as of the latest published state."""
        return self.writer.view

    @property
    def learning(self) -> EventRate:
        return self.writer.rate

    @property
    def predicting(self) -> EventRate:
        return self._predictor.rate

    def thumbnail(self, seq: int) -> bytes | None:
        found = self.writer.thumbnails.get(seq)
        return None if found is None else found[1]

    # ---- what anybody may ask, from any thread ----------------------------------------------

    def learn(
        self, sample: Picture | AnsweredFrame, label: Label, key: str | None = None
    ) -> Future[LessonResult]:
        """Learn a picture, or a frame that was asked about."""
        lesson = Teach(sample, label, key)
        self._enqueue(lesson)
        return lesson.answer

    def predict(self, picture: Picture) -> Future[Reply]:
        if self.closing:
            raise Closing
        question = Ask(picture)
        self._predictor.worker.put(question, seconds=1)
        return question.answer

    def undo(self, seqs: Sequence[int]) -> Future[list[tuple[int, Label]]]:
        """Take these samples back, all of them or none."""
        return self._undo(lambda c: undo_samples(c, seqs))

    def undo_last(self, count: int) -> Future[list[tuple[int, Label]]]:
        """Take the last samples back, all of them or none."""
        return self._undo(lambda c: undo_last(c, count))

    def _undo(
        self, act: Callable[[DurableClassifier], list[tuple[int, Label]]]
    ) -> Future[list[tuple[int, Label]]]:
        job = Change(
            act,
            lambda undone: [
                ("undone", {"seq": seq, "label": escape_label(y)}) for seq, y in undone
            ],
        )
        self._enqueue(job)
        return job.answer

    def report(self) -> Future[dict[str, Any]]:
        """Was it taught well?"""
        job = Change(lambda c: c.report().document(), lambda _: [])
        self._enqueue(job)
        return job.answer

    def forget(self, label: str, *, exact: bool = False) -> Future[int]:
        """Retire a class, or become the classifier that never saw it; answers go on meanwhile."""
        if exact:
            return self._change(
                "forgotten", label, {}, lambda c, known: c.forget_exactly(label=known)
            )
        return self._change("forgotten", label, {}, lambda c, known: c.forget(known))

    def rename(self, label: str, to: str) -> Future[None]:
        return self._change("renamed", label, {"to": to}, lambda c, known: c.rename(known, to))

    def merge(self, label: str, into: str) -> Future[int]:
        return self._change(
            "merged",
            label,
            {"into": into},
            lambda c, known: c.merge(known, find_label(c.taught, into)),
        )

    def _change(
        self,
        change: str,
        label: str,
        more: dict[str, Any],
        act: Callable[[DurableClassifier, Label], Any],
    ) -> Future[Any]:
        data = {"change": change, "label": label, **more}
        job = Change(
            lambda c: act(c, find_label(c.taught, label)), lambda result: [("class", data)]
        )
        self._enqueue(job)
        return job.answer

    def _enqueue(self, job: Teach | Change) -> None:
        if self.closing:
            raise Closing
        rate = self.learning.per_second()
        self.writer.worker.put(
            job, seconds=max(1, min(60, round(self.limit / rate)) if rate else 1)
        )

    def _tell(self, kind: str, data: dict[str, Any]) -> None:
        for listener in self._listeners:
            listener(kind, data)


def _warm(classifier: DurableClassifier) -> None:
    """One step of a twin: torch loads much with its first one, and no request waits for that."""
    with suppress(VerseError):
        classifier.twin().learn_feature(torch.zeros(classifier.backbone.F.z_shape), "warm")
