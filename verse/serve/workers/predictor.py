"""The thread that answers: from the published state, never waiting for learning."""

from __future__ import annotations

from verse.durable import DurableClassifier
from verse.images import shows_nothing
from verse.serve.jobs import Ask
from verse.serve.progress import EventRate
from verse.serve.snapshot import PublishedState
from verse.serve.views import Reply
from verse.serve.workers.worker import Worker


class Predictor:
    """Answers one question after the other."""

    def __init__(
        self, classifier: DurableClassifier, published: PublishedState, *, limit: int
    ) -> None:
        self.rate = EventRate()
        self.worker = Worker[Ask]("predict", self._answer, limit=limit)
        self._G, self._published = classifier.backbone.G, published

    def _answer(self, questions: list[Ask]) -> None:
        for question in questions:
            if not question.answer.set_running_or_notify_cancel():
                continue  # the client disconnected
            try:
                inputs = question.picture.inputs
                z = self._G.run(inputs[None])[0]
                answer = Reply(self._published.answer(z, blank=shows_nothing(inputs)), z)
            except BaseException as error:
                question.answer.set_exception(error)
            else:
                self.rate.tick()
                question.answer.set_result(answer)
