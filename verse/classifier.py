"""StreamClassifier: images and labels in, predictions out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, Unpack

import torch
from torch import Tensor

from verse import build, checkpoint, export
from verse.ahead import prepare_pairs
from verse.backbones import Backbone
from verse.configuration import Configuration, Options
from verse.feature_classifier import FeatureClassifier
from verse.images import shows_nothing
from verse.labels import check_label
from verse.novelty import REFUSED, build_network, measure_novelty
from verse.saved import NotExact as NotExact
from verse.saved import read_saved
from verse.types import Answer, BadData, BadSetting, BadState, Image, Label, Prediction


class StreamClassifier(FeatureClassifier):
    """Teach by showing: one image and its label at a time; ask at any moment.

    Parameters
    ----------
    configuration
        What it is made of; None: the defaults.
    backbone
        The name of a backbone, or a ``Backbone`` that is built already.
    options
        Any field of ``Configuration`` by its name: ``learner``, ``settings``, ``per_class``,
        ``seed``, … They take precedence over ``configuration``.

    >>> import numpy as np
    >>> from verse import backbones
    >>> classifier = StreamClassifier(backbone=backbones.identity((3,)), seed=0)
    >>> for t in range(40):
    ...     classifier.learn_one(np.eye(3)[t % 3] * 4, ["red", "green", "blue"][t % 3])
    >>> classifier.predict_one(np.eye(3)[1] * 4)
    'green'
    >>> classifier.classes, classifier.samples
    (['red', 'green', 'blue'], 40)
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        backbone: str | Backbone | None = None,
        **options: Unpack[Options],
    ) -> None:
        chosen = build.configure(configuration, backbone, options)
        self.backbone = backbone if isinstance(backbone, Backbone) else build.build_backbone(chosen)
        self.configuration = build.complete(chosen, self.backbone)
        super().__init__(build.build_learner(self.configuration, self.backbone.F))

    @property
    def learner_name(self) -> str:
        """The name of the method."""
        return self.configuration.learner

    def __repr__(self) -> str:
        made, memory = self.configuration, self.learner.memory
        held = "" if memory is None else f", {len(memory)} in memory"
        return (
            f"<{type(self).__name__} {made.learner} on {made.backbone} at {made.at}: "
            f"{len(self.labels)} classes, {self.samples} samples{held}>"
        )

    # ---- teaching ---------------------------------------------------------------------------

    def learn_one(self, image: Image, label: Label) -> None:
        """Learn one image. If it is refused, everything is as it was before."""
        label = check_label(label)
        self.learn_prepared(self.features([image])[0], label)

    def learn_many(
        self, images: Iterable[Image], labels: Iterable[Label], *, overlap: bool = False
    ) -> int:
        """Learn images in this order, each once, exactly as ``learn_one``; returns how many.

        If there are not as many labels as images, nothing is learned (of an iterator that has no
        length, what came before its end). With ``overlap`` the features of the next image are
        computed while the current one is learned; ``images`` is then read one ahead.
        """
        count = 0
        for z, label in self.prepare(images, labels, overlap=overlap):
            self.learn_prepared(z, label)
            count += 1
        return count

    def prepare(
        self, images: Iterable[Image], labels: Iterable[Label], *, overlap: bool = False
    ) -> Iterator[tuple[Tensor, Label]]:
        """(feature, checked label) of each pair in order; an image's error comes at its turn."""
        return prepare_pairs(self.features, images, labels, overlap=overlap)

    # ---- answering --------------------------------------------------------------------------

    def features(self, images: Sequence[Image]) -> Tensor:
        """G of the images: float32 [n, …]."""
        return self.backbone.G(images)

    def predict_one(self, image: Image) -> Label | None:
        """The label of an image; None before anything was learned."""
        return self.predict(image).label

    def predict_proba_one(self, image: Image) -> dict[Label, float]:
        """Label → probability, for every class known now."""
        return dict(self.predict(image).probabilities)

    def predict(self, image: Image) -> Prediction:
        """Label, probabilities and the step they come from."""
        return self.predict_feature(self.features([image])[0])

    def predict_many(self, images: Sequence[Image]) -> list[Label | None]:
        """The label of each image."""
        if isinstance(images, str | bytes):  # or its letters would be taken for files
            raise BadData("predict_many takes several images: use predict_one for one")
        if len(images) == 0:
            return []
        answers = self.learner.predict_many(self.features(images))
        return [None if a is None else self.labels.name(a) for a in answers]

    def ask(self, image: Image) -> Answer:
        """What it is, or that it is nothing taught so far.

        ``refused`` of this classifier is the share of known frames that may be called unknown; it
        can be changed at any time.
        """
        inputs = self.backbone.G.preprocess(image)
        z = self.backbone.G.run(inputs[None])[0]
        return self.ask_feature(z, blank=shows_nothing(inputs))

    # ---- keeping ----------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """What rebuilds this classifier, besides the tensors of its learner."""
        labels = {"known": self.labels.known}
        return self.configuration.document() | {"G": self.backbone.key} | labels

    def save(self, path: str | Path, *, taught: Mapping[Label, int] | None = None) -> None:
        """Write everything to one file, atomically. ``load`` reads it, also on another machine.

        ``taught`` is the number of samples of each label, if the caller counts them.
        """
        folder = Path(path).absolute().parent
        if not folder.is_dir():
            raise BadSetting(f"there is no folder {folder}: make it first")
        try:
            facts: dict[str, Any] = {} if taught is None else {"taught": list(taught.items())}
            facts |= {"refused": self.refused}
            checkpoint.write(path, self.state(), self.spec() | facts)
        except OSError as error:
            raise BadSetting(f"cannot write {path}: {error.strerror}") from error

    def export(self, path: str | Path) -> Path:
        """Write G and the network that answers now to one ONNX file, with the labels inside.

        You can call it while another thread learns: the weights are copied between two samples, and
        the file is written afterwards. Input and output are described in ``verse.export``.
        """
        with self._changing:
            live = list(range(len(self.labels)))
            if not live:  # before asking for the network, which does not exist yet
                raise BadSetting("nothing was learned yet: teach it a class before exporting it")
            network = self.learner.network()
            labels = [self.labels.name(output) for output in live]
            none = torch.zeros(1, *self.learner.F.z_shape)
            rule = self.novelty.rule(measure_novelty(self.learner, none), refused=self.refused)
            novelty = build_network(self.learner, network, live, rule)
            facts = {"learner": self.learner_name, "samples": self.samples, "refused": self.refused}
        return export.write_onnx(path, self.backbone, network, novelty, live, labels, facts)

    def twin(self) -> StreamClassifier:
        """Another classifier of the same configuration that has learned nothing."""
        return StreamClassifier(self.configuration, backbone=self.backbone)

    def copy(self) -> StreamClassifier:
        """Another classifier that has learned the same."""
        twin = self.twin()
        with self._changing:
            twin.restore({name: t.clone() for name, t in self.state().items()}, self.spec())
        twin.refused = self.refused
        return twin

    def reset(self) -> None:
        """Have learned nothing."""
        self.restore(self.twin().state(), {"known": []})

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        backbone: Backbone | None = None,
        weights: str | Path | None = None,
        threads: int | None = None,
        device: str = "cpu",
        learner: str | None = None,
    ) -> Self:
        """Go on where ``save`` stopped, to the last bit on the same machine and versions.

        A backbone that was not built by name must be handed over again; so must the dotted path
        of a learner of your own.
        """
        moved = {"weights": weights} if weights is not None else {}
        saved = read_saved(path, backbone, learner, threads=threads, device=device, **moved)
        classifier = cls(saved.configuration, backbone=saved.backbone)
        classifier.restore(saved.tensors, saved.spec)
        try:
            # files of earlier versions have none
            classifier.refused = saved.spec.get("refused", REFUSED)
        except (TypeError, BadSetting) as error:
            raise BadState(f"{path} is damaged: {error}") from error
        return classifier
