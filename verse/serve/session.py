"""One classifier, two threads: a writer that owns it and learns, a predictor that answers.

Requests of both kinds wait in bounded queues; a full one refuses at once (``Busy``).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import torch

from verse.durable import DurableClassifier
from verse.serve import pictures
from verse.serve.jobs import Ask, Change, Teach
from verse.serve.predictor import Predictor
from verse.serve.progress import Rate
from verse.serve.refusals import Closing, Unknown
from verse.serve.snapshot import Published
from verse.serve.views import Learned, View
from verse.serve.writer import Writer
from verse.types import Label, Prediction, VerseError


class Session:
    """A durable classifier at work. ``listener(type, data)`` hears of every change.

    >>> import io, tempfile, verse
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (64, 64), "red").save(file, "PNG")
    >>> session = Session(verse.open(tempfile.mkdtemp(), weights="random"))
    >>> session.start()
    >>> session.learn(file.getvalue(), "red").result().seq
    1
    >>> session.predict(file.getvalue()).result().label
    'red'
    >>> session.close()
    """

    def __init__(
        self,
        classifier: DurableClassifier,
        *,
        limit: int = 64,
        max_pixels: int = pictures.MAX_PIXELS,
        listener: Callable[[str, dict[str, Any]], None] = lambda kind, data: None,
    ) -> None:
        self.classifier, self.limit = classifier, limit
        self.listener = listener
        self.closing = False
        _warm(classifier)
        published = Published(classifier)
        self._writer = Writer(
            classifier, published, limit=limit, max_pixels=max_pixels, tell=self._tell
        )
        self._predictor = Predictor(classifier, published, limit=limit, max_pixels=max_pixels)

    def start(self) -> None:
        self._writer.worker.start()
        self._predictor.worker.start()

    def close(self) -> None:
        """Refuse what comes, finish what waits, checkpoint, release the directory."""
        if self.closing:
            return
        self.closing = True
        self._predictor.worker.stop()
        self._writer.close()

    # ---- what anybody may look at, from any thread ------------------------------------------

    @property
    def ready(self) -> bool:
        return not self.closing and self._writer.worker.alive and self._predictor.worker.alive

    @property
    def waiting(self) -> int:
        """Lessons in the queue."""
        return self._writer.worker.waiting

    @property
    def view(self) -> View:
        """What is known of the classifier, as of the latest published state."""
        return self._writer.view

    @property
    def learning(self) -> Rate:
        return self._writer.rate

    @property
    def predicting(self) -> Rate:
        return self._predictor.rate

    def thumbnail(self, seq: int) -> bytes | None:
        found = self._writer.thumbnails.get(seq)
        return None if found is None else found[1]

    # ---- what anybody may ask, from any thread ----------------------------------------------

    def learn(self, image: bytes, label: Label, key: str | None = None) -> Future[Learned]:
        lesson = Teach(image, label, key)
        self._enqueue(lesson)
        return lesson.answer

    def predict(self, image: bytes) -> Future[Prediction]:
        if self.closing:
            raise Closing
        question = Ask(image)
        self._predictor.worker.put(question, seconds=1)
        return question.answer

    def undo(self, seq: int) -> Future[Label]:
        change = Change(
            lambda c: c.undo(seq), lambda label: ("undone", {"seq": seq, "label": label})
        )
        self._enqueue(change)
        return change.answer

    def forget(self, label: str) -> Future[int]:
        return self._change("forgotten", label, {}, lambda c, known: c.forget(known))

    def rename(self, label: str, to: str) -> Future[None]:
        return self._change("renamed", label, {"to": to}, lambda c, known: c.rename(known, to))

    def merge(self, label: str, into: str) -> Future[int]:
        return self._change(
            "merged", label, {"into": into}, lambda c, known: c.merge(known, _known(c, into))
        )

    def _change(
        self,
        change: str,
        label: str,
        more: dict[str, Any],
        act: Callable[[DurableClassifier, Label], Any],
    ) -> Future[Any]:
        data = {"change": change, "label": label, **more}
        job = Change(lambda c: act(c, _known(c, label)), lambda result: ("class", data))
        self._enqueue(job)
        return job.answer

    def _enqueue(self, job: Teach | Change) -> None:
        if self.closing:
            raise Closing
        rate = self.learning.per_second()
        self._writer.worker.put(
            job, seconds=max(1, min(60, round(self.limit / rate)) if rate else 1)
        )

    def _tell(self, kind: str, data: dict[str, Any]) -> None:
        self.listener(kind, data)


def _warm(classifier: DurableClassifier) -> None:
    """One step of a twin: torch loads much with its first one, and nobody shall wait for that."""
    with suppress(VerseError):
        classifier.twin().learn_feature(torch.zeros(classifier.backbone.F.z_shape), "warm")


def _known(classifier: DurableClassifier, label: str) -> Label:
    """The class of that name; a class taught as a number is found by its digits."""
    if label in classifier.taught:
        return label
    if label.lstrip("-").isdecimal() and int(label) in classifier.taught:
        return int(label)
    raise Unknown(f"there is no class {label!r}")
