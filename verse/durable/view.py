"""What can be asked of a classifier that its owner changes: answers and facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import Tensor

from verse.backbones import Backbone
from verse.classifier import StreamClassifier
from verse.configuration import Configuration
from verse.learners import Learner
from verse.types import Answer, Image, Label, Prediction


class ClassifierView:
    """Passes every question on to a ``StreamClassifier``; it has no way to change it.

    >>> from verse import backbones
    >>> inner = StreamClassifier(backbone=backbones.identity((2,)))
    >>> inner.learn_one([0.0, 1.0], "mug")
    >>> ClassifierView(inner).predict_one([0.0, 1.0])
    'mug'
    """

    def __init__(self, classifier: StreamClassifier) -> None:
        self._classifier = classifier

    # ---- answering --------------------------------------------------------------------------

    def features(self, images: Sequence[Image]) -> Tensor:
        """G of the images: float32 [n, …]."""
        return self._classifier.features(images)

    def predict_one(self, image: Image) -> Label | None:
        """The label of an image; None before anything was learned."""
        return self._classifier.predict_one(image)

    def predict_proba_one(self, image: Image) -> dict[Label, float]:
        """Label → probability, for every class known now."""
        return self._classifier.predict_proba_one(image)

    def predict(self, image: Image) -> Prediction:
        """Label, probabilities and the step they come from."""
        return self._classifier.predict(image)

    def predict_many(self, images: Sequence[Image]) -> list[Label | None]:
        """The label of each image."""
        return self._classifier.predict_many(images)

    def predict_feature(self, z: Tensor) -> Prediction:
        """The answer for a feature that ``features`` made."""
        return self._classifier.predict_feature(z)

    def ask(self, image: Image) -> Answer:
        """What it is, or that it is nothing taught so far."""
        return self._classifier.ask(image)

    def ask_feature(self, z: Tensor, *, blank: bool = False) -> Answer:
        """The same for a feature that ``features`` made; a ``blank`` picture is never known."""
        return self._classifier.ask_feature(z, blank=blank)

    @property
    def refused(self) -> float:
        """The share of known frames that ``ask`` may call unknown; not kept on disk."""
        return self._classifier.refused

    @refused.setter
    def refused(self, share: float) -> None:
        self._classifier.refused = share

    # ---- looking ----------------------------------------------------------------------------

    @property
    def configuration(self) -> Configuration:
        """What the classifier is made of."""
        return self._classifier.configuration

    @property
    def backbone(self) -> Backbone:
        return self._classifier.backbone

    @property
    def learner(self) -> Learner:
        return self._classifier.learner

    @property
    def learner_name(self) -> str:
        """The name of the method."""
        return self._classifier.learner_name

    @property
    def classes(self) -> list[Label]:
        """Labels known now, in order of arrival."""
        return self._classifier.classes

    @property
    def names(self) -> tuple[Label, ...]:
        """The label of each output of the learner, "" where a class was forgotten."""
        return self._classifier.labels.names

    @property
    def samples(self) -> int:
        """How many images were learned."""
        return self._classifier.samples

    @property
    def taught(self) -> Mapping[Label, int] | None:
        """Label → how many samples of it were learned; None: not counted."""
        return None

    def memory_counts(self) -> dict[Label, int]:
        """How many samples of each class are in memory."""
        return self._classifier.memory_counts()

    # ---- copying ----------------------------------------------------------------------------

    def twin(self) -> StreamClassifier:
        """Another classifier of the same configuration that has learned nothing; not on disk."""
        return self._classifier.twin()

    def lead(self, other: StreamClassifier) -> None:
        """Let a twin answer as this classifier does now."""
        other.follow(self._classifier)

    def save(self, path: str | Path) -> None:
        """Write everything to one file that ``StreamClassifier.load`` reads."""
        self._classifier.save(path, taught=self.taught)

    def copy(self) -> StreamClassifier:
        """Another classifier that has learned the same; not on disk."""
        return self._classifier.copy()

    def export(self, path: str | Path) -> Path:
        """Write G and the network that answers now to one ONNX file, with the labels inside."""
        return self._classifier.export(path)
