"""The thread that owns the classifier: it makes lessons durable, learns them, publishes, reports.

It takes everything that waits, makes it durable by one disk flush, learns it, publishes the new
state, and only then answers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from verse.durable import THUMBNAILS, DurableClassifier, Lesson, Outcome
from verse.serve.jobs import Change, Teach
from verse.serve.pictures import AnsweredFrame, thumbnail
from verse.serve.process_memory import MemoryTrimmer
from verse.serve.progress import EventRate, Prequential
from verse.serve.snapshot import PublishedState
from verse.serve.views import LessonResult, View
from verse.serve.workers.worker import Worker

GROUP = 16  # lessons that share one disk flush


class Writer:
    """Does lessons and changes in order. ``tell(type, data)`` is called for each.

    ``view`` is what others may know; it is replaced after every group.
    """

    def __init__(
        self,
        classifier: DurableClassifier,
        published: PublishedState,
        *,
        limit: int,
        tell: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self.rate = EventRate()
        self.worker = Worker[Teach | Change](
            "learn", self._work, limit=limit, go_together=_is_lesson, most=GROUP
        )
        self._classifier, self._published = classifier, published
        self._tell = tell
        self._history = classifier.path / "prequential.json"
        self._prequential = Prequential.load(self._history)
        self._samples = classifier.samples
        self._memory = MemoryTrimmer()
        self.thumbnails = classifier.thumbnails()
        self.view = self._look()

    def close(self) -> None:
        """Finish what waits and release the directory."""
        self.worker.stop()
        with suppress(OSError):
            self._prequential.save(self._history)
        self._classifier.close()

    def _work(self, group: list[Teach | Change]) -> None:
        lessons = [job for job in group if isinstance(job, Teach)]
        if lessons:
            self._teach(lessons)
        for job in group:
            if isinstance(job, Change):
                self._alter(job)
                self._samples = self._classifier.samples
        self._memory.trim()  # after every answer is given

    # ---- lessons ----------------------------------------------------------------------------

    def _teach(self, group: list[Teach]) -> None:
        """Learn a group. Each is answered once, whatever happens; a refused one harms no other."""
        jobs: list[Teach] = []
        lessons: list[Lesson] = []
        for job in group:
            if not job.answer.set_running_or_notify_cancel():
                continue  # the client disconnected before it was begun
            try:
                lessons.append(self._lesson(job))
                jobs.append(job)
            except BaseException as error:
                job.answer.set_exception(error)
        if not jobs:
            return
        try:
            outcomes = self._classifier.learn_lessons(lessons, ask=True)
            self._samples = self._classifier.samples - sum(o.learned for o in outcomes)
            reports = [
                self._report(j, o, n) for j, o, n in zip(jobs, outcomes, lessons, strict=True)
            ]
            self.renew()
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
                self._tell("learned", report.document())

    def _lesson(self, job: Teach) -> Lesson:
        sample = job.sample
        if isinstance(sample, AnsweredFrame):
            z, content = sample.z, None
        else:
            z = self._classifier.backbone.G.run(sample.inputs[None])[0]
            content = sample.inputs.tobytes() if job.key is not None else None
        kept = {"thumbnail": thumbnail(sample.small)}
        if self._classifier.keep_images:
            kept["image"] = sample.encoded
        return Lesson(z, job.label, job.key, kept, content)

    def _report(self, job: Teach, outcome: Outcome, lesson: Lesson) -> LessonResult:
        """Count an outcome, and say what became of it."""
        guess = outcome.guess.label if outcome.guess is not None else None
        correct = None if guess is None else guess == job.label
        if outcome.learned:
            self._samples += 1
            self.rate.tick()
            self._keep(outcome.seq, lesson)
            if correct is not None:
                self._prequential.add(self._samples, correct, outcome.seq)
        classes = len(self._classifier.classes)
        return LessonResult(outcome.seq, job.label, self._samples, classes, guess, correct)

    def _keep(self, seq: int, lesson: Lesson) -> None:
        assert lesson.images is not None
        self.thumbnails[seq] = (lesson.label, lesson.images["thumbnail"])
        same = [s for s, (label, _) in self.thumbnails.items() if label == lesson.label]
        for old in same[:-THUMBNAILS]:
            del self.thumbnails[old]

    # ---- changes ----------------------------------------------------------------------------

    def _alter(self, job: Change) -> None:
        if not job.answer.set_running_or_notify_cancel():
            return
        try:
            try:
                result = job.act(self._classifier)
                events = job.events(result)
                undone = {data["seq"] for kind, data in events if kind == "undone"}
                self._prequential.remove(undone, self._classifier.samples)
            finally:  # a class may be forgotten and its files not yet wiped
                self.thumbnails = self._classifier.thumbnails()
                self.renew()
        except BaseException as error:
            job.answer.set_exception(error)
            return
        for event in events:
            self._tell(*event)
        job.answer.set_result(result)

    def renew(self) -> None:
        self._published.publish(self._classifier)
        self.view = self._look()

    def _look(self) -> View:
        return View.of(self._classifier, self.thumbnails, self._prequential)


def _is_lesson(job: Teach | Change) -> bool:
    return isinstance(job, Teach)
