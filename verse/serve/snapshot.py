"""What the predictor reads while the writer learns."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import torch
from torch import Tensor

from verse.classifier import StreamClassifier
from verse.durable import DurableClassifier
from verse.types import Answer


@dataclass
class _Copy:
    classifier: StreamClassifier
    lock: threading.Lock = field(default_factory=threading.Lock)


class PublishedState:
    """Two copies of the learner: answers come from one while the writer renews the other.

    The writer may wait for an answer under way; the reader never waits for the writer.

    >>> import tempfile, torch, verse
    >>> classifier = verse.open(tempfile.mkdtemp(), backbone=verse.backbones.identity((3,)))
    >>> published = PublishedState(classifier)
    >>> classifier.learn_feature(torch.ones(3), "mug")
    1
    >>> published.answer(torch.ones(3)).label is None
    True
    >>> published.publish(classifier)
    >>> published.answer(torch.ones(3)).label
    'mug'
    >>> classifier.close()
    """

    def __init__(self, classifier: DurableClassifier) -> None:
        self._front, self._back = _Copy(classifier.twin()), _Copy(classifier.twin())
        self.publish(classifier)

    def publish(self, classifier: DurableClassifier) -> None:
        """Writer only: from now on answers come from the classifier as it is.

        What a method works out once after a change (statistics solved, means of exemplars) is
        worked out here, so that no answer has to wait for it.
        """
        spare, nothing = self._back, torch.zeros(classifier.backbone.F.z_shape)
        classifier.ask_feature(nothing)
        with spare.lock:
            classifier.lead(spare.classifier)
            spare.classifier.ask_feature(nothing)
        self._front, self._back = spare, self._front

    def answer(self, z: Tensor, *, blank: bool = False) -> Answer:
        """One reader thread: the answer of the latest published state."""
        while True:
            copy = self._front
            if copy.lock.acquire(blocking=False):
                try:
                    return copy.classifier.ask_feature(z, blank=blank)
                finally:
                    copy.lock.release()
            # the writer renews this copy already, so another is in front by now
