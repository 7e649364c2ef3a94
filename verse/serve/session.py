"""One classifier, two threads: a writer that owns it and learns, a predictor that answers.

Requests of both kinds wait in bounded queues; a full one refuses at once (``Busy``). The writer
takes everything that waits, makes it durable by one disk flush, learns it, publishes the new
state, and only then reports. The predictor reads the published state and never waits for learning.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from verse.durable import DurableClassifier, Lesson, Outcome
from verse.durable.journal import THUMBNAILS
from verse.serve import pictures
from verse.serve.progress import Prequential, Rate
from verse.serve.snapshot import Published
from verse.types import BadLabel, Label, Prediction, VerseError

GROUP = 16  # lessons that share one disk flush


class Busy(VerseError):
    """The queue is full: nothing was done, come again in ``seconds``."""

    def __init__(self, what: str, seconds: int) -> None:
        super().__init__(f"too many {what} requests wait already: try again in {seconds} s")
        self.seconds = seconds


class Closing(VerseError):
    """The service shuts down: nothing was done."""

    def __init__(self) -> None:
        super().__init__("the service shuts down; send it again when it is back")


class Unknown(BadLabel):
    """There is no such class."""


@dataclass(frozen=True)
class Learned:
    """What became of a taught image."""

    seq: int
    label: Label
    samples: int
    classes: int
    guess: Label | None = None
    correct: bool | None = None

    def document(self) -> dict[str, Any]:
        """As the service tells it."""
        return {
            "seq": self.seq,
            "label": self.label,
            "samples": self.samples,
            "classes": self.classes,
            "prequential": {"label": self.guess, "correct": self.correct},
        }


@dataclass(frozen=True)
class ClassView:
    """One class as the page shows it."""

    label: Label
    taught: int
    remembered: int
    thumbnails: tuple[int, ...]


@dataclass(frozen=True)
class View:
    """What others may know of the classifier: made by the writer, never changed."""

    samples: int = 0
    classes: tuple[ClassView, ...] = ()
    memory_samples: int = 0
    memory_limit: int = 0
    memory_bytes: int = 0
    accuracy: float | None = None
    points: tuple[tuple[int, float], ...] = ()


@dataclass
class _Teach:
    image: bytes
    label: Label
    key: str | None
    answer: Future[Learned] = field(default_factory=Future)


@dataclass
class _Change:
    act: Callable[[DurableClassifier], Any]
    event: Callable[[Any], tuple[str, dict[str, Any]]]
    answer: Future[Any] = field(default_factory=Future)


@dataclass
class _Ask:
    image: bytes
    answer: Future[Prediction] = field(default_factory=Future)


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
        self.classifier = classifier
        self.limit, self.max_pixels = limit, max_pixels
        self.listener = listener
        self.learning, self.predicting = Rate(), Rate()
        self.closing = False
        self._history = classifier.path / "prequential.json"
        self._prequential = Prequential.load(self._history)
        self._lessons: queue.Queue[_Teach | _Change | None] = queue.Queue(limit)
        self._questions: queue.Queue[_Ask | None] = queue.Queue(limit)
        _warm(classifier)
        self._published = Published(classifier)
        self._samples = classifier.samples
        self._jpegs = classifier.thumbnails()
        self.view = self._look()
        self._writer = threading.Thread(target=self._write, name="verse-writer", daemon=True)
        self._predictor = threading.Thread(
            target=self._predict, name="verse-predictor", daemon=True
        )

    def start(self) -> None:
        self._writer.start()
        self._predictor.start()

    @property
    def ready(self) -> bool:
        return not self.closing and self._writer.is_alive() and self._predictor.is_alive()

    @property
    def waiting(self) -> int:
        """Lessons in the queue."""
        return self._lessons.qsize()

    def close(self) -> None:
        """Refuse what comes, finish what waits, checkpoint, release the directory."""
        if self.closing:
            return
        self.closing = True
        for waiting, thread in ((self._lessons, self._writer), (self._questions, self._predictor)):
            if thread.is_alive():
                waiting.put(None)
                thread.join()
        for left in (self._lessons, self._questions):
            _refuse_rest(left)
        with suppress(OSError):
            self._prequential.save(self._history)
        self.classifier.close()

    # ---- what anybody may ask, from any thread ----------------------------------------------

    def learn(self, image: bytes, label: Label, key: str | None = None) -> Future[Learned]:
        return self._enqueue(_Teach(image, label, key))

    def predict(self, image: bytes) -> Future[Prediction]:
        if self.closing:
            raise Closing
        question = _Ask(image)
        try:
            self._questions.put_nowait(question)
        except queue.Full:
            raise Busy("predict", 1) from None
        return question.answer

    def undo(self, seq: int) -> Future[Label]:
        return self._enqueue(
            _Change(lambda c: c.undo(seq), lambda label: ("undone", {"seq": seq, "label": label}))
        )

    def forget(self, label: str) -> Future[int]:
        return self._change("forgotten", label, {}, lambda c, known: c.forget(known))

    def rename(self, label: str, to: str) -> Future[None]:
        return self._change("renamed", label, {"to": to}, lambda c, known: c.rename(known, to))

    def merge(self, label: str, into: str) -> Future[int]:
        return self._change(
            "merged", label, {"into": into}, lambda c, known: c.merge(known, _known(c, into))
        )

    def thumbnail(self, seq: int) -> bytes | None:
        found = self._jpegs.get(seq)
        return None if found is None else found[1]

    def _change(
        self,
        change: str,
        label: str,
        more: dict[str, Any],
        act: Callable[[DurableClassifier, Label], Any],
    ) -> Future[Any]:
        data = {"change": change, "label": label, **more}
        return self._enqueue(
            _Change(lambda c: act(c, _known(c, label)), lambda result: ("class", data))
        )

    def _enqueue(self, job: Any) -> Future[Any]:
        if self.closing:
            raise Closing
        try:
            self._lessons.put_nowait(job)
        except queue.Full:
            rate = self.learning.per_second()
            raise Busy("learn", max(1, min(60, round(self.limit / rate)) if rate else 1)) from None
        answer: Future[Any] = job.answer
        return answer

    # ---- the predictor ----------------------------------------------------------------------

    def _predict(self) -> None:
        while (question := self._questions.get()) is not None:
            if not question.answer.set_running_or_notify_cancel():
                continue  # who asked has gone
            try:
                pictures.check(question.image, self.max_pixels)
                z = self.classifier.features([question.image])[0]
                answer = self._published.answer(z)
            except BaseException as error:
                question.answer.set_exception(error)
            else:
                self.predicting.tick()
                question.answer.set_result(answer)

    # ---- the writer -------------------------------------------------------------------------

    def _write(self) -> None:
        job = self._lessons.get()
        while job is not None:
            following: _Teach | _Change | bool | None = False
            if isinstance(job, _Teach):
                group = [job]
                while len(group) < GROUP:
                    try:
                        following = self._lessons.get_nowait()
                    except queue.Empty:
                        break
                    if not isinstance(following, _Teach):
                        break
                    group.append(following)
                    following = False
                self._teach(group)
            else:
                self._alter(job)
                self._samples = self.classifier.samples
            job = self._lessons.get() if isinstance(following, bool) else following

    def _teach(self, group: list[_Teach]) -> None:
        """Learn a group. Each is answered once, whatever happens; a refused one harms no other."""
        jobs: list[_Teach] = []
        lessons: list[Lesson] = []
        for job in group:
            if not job.answer.set_running_or_notify_cancel():
                continue  # who taught has gone, before it was begun
            try:
                known = self.classifier.seq_of(job.key)
                if known is not None:
                    job.answer.set_result(self._report(job, Outcome(known, repeated=True)))
                    continue
                lessons.append(self._lesson(job))
                jobs.append(job)
            except BaseException as error:
                job.answer.set_exception(error)
        if not jobs:
            return
        try:
            outcomes = self.classifier.learn_lessons(lessons, ask=True)
            self._samples = self.classifier.samples - sum(o.learned for o in outcomes)
            reports = [
                self._report(j, o, n) for j, o, n in zip(jobs, outcomes, lessons, strict=True)
            ]
            self._renew()
        except BaseException as error:
            for job in jobs:
                job.answer.set_exception(error)
            return
        for job, outcome, report in zip(jobs, outcomes, reports, strict=True):
            if outcome.error is not None:
                job.answer.set_exception(outcome.error)
                continue
            job.answer.set_result(report)
            if outcome.learned:
                self.listener("learned", report.document())

    def _lesson(self, job: _Teach) -> Lesson:
        pictures.check(job.image, self.max_pixels)
        z = self.classifier.features([job.image])[0]
        kept = {"thumbnail": pictures.thumbnail(job.image)}
        if self.classifier.keep_images:
            kept["image"] = job.image
        return Lesson(z, job.label, job.key, kept)

    def _report(self, job: _Teach, outcome: Outcome, lesson: Lesson | None = None) -> Learned:
        """Count an outcome, and say what became of it."""
        guess = outcome.guess.label if outcome.guess is not None else None
        correct = None if guess is None else guess == job.label
        if outcome.learned and lesson is not None:
            self._samples += 1
            self.learning.tick()
            self._keep(outcome.seq, lesson)
            if correct is not None:
                self._prequential.add(self._samples, correct)
        classes = len(self.classifier.classes)
        return Learned(outcome.seq, job.label, self._samples, classes, guess, correct)

    def _keep(self, seq: int, lesson: Lesson) -> None:
        assert lesson.images is not None
        self._jpegs[seq] = (lesson.label, lesson.images["thumbnail"])
        same = [s for s, (label, _) in self._jpegs.items() if label == lesson.label]
        for old in same[:-THUMBNAILS]:
            del self._jpegs[old]

    def _alter(self, job: _Change) -> None:
        if not job.answer.set_running_or_notify_cancel():
            return
        try:
            try:
                result = job.act(self.classifier)
            finally:  # a class may be forgotten and its files not yet wiped
                self._jpegs = self.classifier.thumbnails()
                self._renew()
        except BaseException as error:
            job.answer.set_exception(error)
            return
        self.listener(*job.event(result))
        job.answer.set_result(result)

    def _renew(self) -> None:
        self._published.publish(self.classifier)
        self.view = self._look()

    def _look(self) -> View:
        classifier, memory = self.classifier, self.classifier.learner.memory
        shown: dict[Label, list[int]] = {}
        for seq, (label, _) in self._jpegs.items():
            shown.setdefault(label, []).append(seq)
        remembered = classifier.remembered()
        return View(
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
            accuracy=self._prequential.accuracy,
            points=tuple(self._prequential.points),
        )


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


def _refuse_rest(waiting: queue.Queue[Any]) -> None:
    with suppress(queue.Empty):
        while True:
            job = waiting.get_nowait()
            if job is not None:
                job.answer.set_exception(Closing())
