"""The thread that answers: from the published state, never waiting for learning."""

from __future__ import annotations

from verse.durable import DurableClassifier
from verse.serve import pictures
from verse.serve.jobs import Ask
from verse.serve.progress import Rate
from verse.serve.snapshot import Published
from verse.serve.worker import Worker


class Predictor:
    """Answers one question after the other."""

    def __init__(
        self, classifier: DurableClassifier, published: Published, *, limit: int, max_pixels: int
    ) -> None:
        self.rate = Rate()
        self.worker = Worker[Ask]("predict", self._answer, limit=limit)
        self._features, self._published = classifier.features, published
        self._max_pixels = max_pixels

    def _answer(self, questions: list[Ask]) -> None:
        for question in questions:
            if not question.answer.set_running_or_notify_cancel():
                continue  # who asked has gone
            try:
                pictures.check(question.image, self._max_pixels)
                z = self._features([question.image])[0]
                answer = self._published.answer(z)
            except BaseException as error:
                question.answer.set_exception(error)
            else:
                self.rate.tick()
                question.answer.set_result(answer)
