"""StreamClassifier: images and labels in, predictions out."""

from __future__ import annotations

import math
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, Unpack

import torch
from torch import Tensor

from verse import build, checkpoint, export
from verse.backbones import Backbone
from verse.configuration import Configuration, Options
from verse.doctor import Report, diagnose, group_holds
from verse.images import shows_nothing
from verse.kernels.interrupts import defer_interrupt
from verse.labels import Labels, check_label, pair_up
from verse.novelty import (
    BLANK_NOVELTY,
    REFUSED,
    Novelty,
    build_network,
    check_share,
    due,
    freshness,
    measure,
    measured_features,
)
from verse.types import Answer, BadImage, BadSetting, BadState, Image, Label, Prediction

_NOVELTY = "novelty."  # prefix of its tensors in a saved state


class NotExact(UserWarning):
    """A loaded classifier goes on correctly, but not bit for bit as it would have where it was."""


class StreamClassifier:
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
        self.learner = build.build_learner(self.configuration, self.backbone.F)
        self.labels = Labels()
        self.novelty = Novelty()
        self.refused = REFUSED
        self._changing = threading.Lock()  # held while learner and labels change together

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

    def learn_feature(self, z: Tensor, label: Label) -> None:
        """Learn from a feature that ``features`` made."""
        self.learn_prepared(z, check_label(label))

    def learn_prepared(self, z: Tensor, label: Label) -> None:
        """The same for a label that ``check_label`` gave."""
        with defer_interrupt(), self._changing:  # the label and the sample belong together
            mark = self.novelty.mark()
            try:
                # measured before it is learned: a frame that was taught looks too usual
                if label in self.labels and due(self.novelty, self.samples, len(self.labels)):
                    fresh = freshness(self.learner, z, self.labels.number(label))
                    self.novelty.observe(measure(self.learner, z.unsqueeze(0)), fresh)
                self.learner.learn_one(z, self.labels.number_or_next(label))
            except BaseException:
                self.novelty.undo(mark)
                raise
            self.labels.add(label)

    def prepare(
        self, images: Iterable[Image], labels: Iterable[Label], *, overlap: bool = False
    ) -> Iterator[tuple[Tensor, Label]]:
        """(feature, checked label) of each pair in order; an image's error comes at its turn."""
        pairs = pair_up(images, labels)
        if not overlap:
            for image, label in pairs:
                label = check_label(label)
                yield self.features([image])[0], label
            return
        with ThreadPoolExecutor(1) as worker:
            waiting: deque[tuple[Future[Tensor], Label]] = deque()
            for image, label in pairs:
                label = check_label(label)
                waiting.append((worker.submit(self.features, [image]), label))
                if len(waiting) > 1:
                    z, due = waiting.popleft()
                    yield z.result()[0], due
            for z, due in waiting:
                yield z.result()[0], due

    def consolidate(self) -> None:
        """Deferred learning of the methods that have it (GDumb, Offline, coreset VCL)."""
        with self._changing:
            self.learner.consolidate()

    def forget(self, label: Label) -> int:
        """Retire a class; its samples leave memory (weights shared with others stay)."""
        number = self.labels.number(label)
        with self._changing:
            removed = self.learner.forget(number)
            self._leave(label)
        return removed

    def rename(self, label: Label, new: Label) -> None:
        """Give a class another label."""
        self.labels.number(label)
        with self._changing:
            self.labels.rename(label, check_label(new))

    def merge(self, label: Label, into: Label) -> int:
        """Two labels are one class: what is remembered of ``label`` becomes ``into``."""
        numbers = self.labels.number(label), self.labels.number(into)
        with self._changing:
            moved = self.learner.merge(*numbers)
            self._leave(label)
        return moved

    def _leave(self, label: Label) -> None:
        """The learner has closed the place of a class: so do the labels."""
        self.labels.remove(label)
        self.learner.outputs.renumber()

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
        if len(images) == 0:
            return []
        answers = self.learner.predict_many(self.features(images))
        return [None if a is None else self.labels.name(a) for a in answers]

    def predict_feature(self, z: Tensor) -> Prediction:
        """The answer for a feature that ``features`` made."""
        # a sum is one pass and keeps every NaN and infinity; only if it is odd look closer
        if not math.isfinite(float(z.sum())) and not bool(torch.isfinite(z).all()):
            raise BadImage("the feature contains NaN or infinite values: there is no answer to it")
        p = {self.labels.name(y): v for y, v in self.learner.predict_proba_one(z).items()}
        return Prediction(max(p, key=p.__getitem__) if p else None, p, self.samples)

    def ask(self, image: Image) -> Answer:
        """What it is, or that it is nothing taught so far.

        ``refused`` of this classifier is the share of known frames that may be called unknown; it
        can be changed at any time.
        """
        inputs = self.backbone.G.preprocess(image)
        z = self.backbone.G.run(inputs[None])[0]
        return self.ask_feature(z, blank=shows_nothing(inputs))

    def ask_feature(self, z: Tensor, *, blank: bool = False) -> Answer:
        """The same for a feature that ``features`` made; a ``blank`` picture is never known."""
        best = self.predict_feature(z)
        if best.label is None:
            return Answer(None, None, False, math.inf, {}, best.step)
        measures = measure(self.learner, z.unsqueeze(0))
        novelty = float(self.novelty.judge(measures, refused=self.refused))
        if blank:
            novelty = max(novelty, BLANK_NOVELTY)
        label = best.label if novelty <= 1 else None
        return Answer(label, best.label, novelty <= 1, novelty, best.probabilities, best.step)

    @property
    def classes(self) -> list[Label]:
        """Labels known now, as they were given, in order of arrival."""
        return list(self.labels)

    @property
    def samples(self) -> int:
        """How many images were learned."""
        return self.learner.samples

    def memory_counts(self) -> dict[Label, int]:
        """How many samples of each class are in memory."""
        if self.learner.memory is None:
            return {}
        counts = self.learner.memory.counts()
        return {label: counts.get(number, 0) for label, number in self.labels.known}

    def report(
        self, *, most: int = 20, seq_of: Callable[[Tensor], int | None] | None = None
    ) -> Report:
        """Was it taught well? Looks at the samples in memory; see ``verse.doctor``.

        ``most`` suspects are named; ``seq_of`` tells the sequence number of a feature.
        """
        with self._changing:
            F, memory = self.learner.F, self.learner.memory
            if memory is None or len(memory) == 0 or "z" not in memory.fields:
                return Report((), (), ())
            held = memory.all()
            if tuple(held.z.shape[1:]) != F.stored_shape:  # codes instead of features
                return Report((), (), ())
            E, y, labels = measured_features(self.learner, held.z), held.y.tolist(), self.classes
        Z = held.z.permute(0, 3, 1, 2) if F.stored_shape != F.z_shape else held.z
        seqs = None if seq_of is None else [seq_of(z) for z in Z]
        groups = None if seqs is None else group_holds(y, seqs)
        return diagnose(E, y, labels, groups=groups, seqs=seqs, most=most)

    # ---- keeping ----------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """What rebuilds this classifier, besides the tensors of its learner."""
        labels = {"known": self.labels.known}
        return self.configuration.document() | {"G": self.backbone.key} | labels

    def save(self, path: str | Path, *, taught: Mapping[Label, int] | None = None) -> None:
        """Write everything to one file, atomically; ``load`` goes on teaching from it anywhere.

        ``taught`` is how many samples of each label there were, for whoever counts them.
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

        Any thread may ask while another learns: the weights are copied between two samples, and
        writing the file holds up nobody. Input and output are described in ``verse.export``.
        """
        with self._changing:
            live = list(range(len(self.labels)))
            if not live:  # before asking for the network, which does not exist yet
                raise BadSetting("nothing was learned yet: teach it a class before exporting it")
            network = self.learner.network()
            labels = [self.labels.name(output) for output in live]
            none = torch.zeros(1, *self.learner.F.z_shape)
            rule = self.novelty.rule(measure(self.learner, none), refused=self.refused)
            novelty = build_network(self.learner, network, live, rule)
            facts = {"learner": self.learner_name, "samples": self.samples, "refused": self.refused}
        return export.write(path, self.backbone, network, novelty, live, labels, facts)

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

    def state(self) -> dict[str, Tensor]:
        """Everything learned, as tensors."""
        novelty = {_NOVELTY + name: value for name, value in self.novelty.state().items()}
        return self.learner.state() | novelty

    @property
    def refused(self) -> float:
        """The share of known frames that ``ask`` may call unknown."""
        return self._refused

    @refused.setter
    def refused(self, share: float) -> None:
        self._refused = check_share(share)

    def follow(self, other: StreamClassifier) -> None:
        """Answer as another classifier of the same configuration does now."""
        with self._changing:
            self.learner.follow(other.learner)
            self.novelty.follow(other.novelty)
            self.labels = Labels(other.labels.names)
            self._refused = other.refused

    def restore(self, tensors: dict[str, Tensor], spec: Mapping[str, Any]) -> None:
        """Become what ``state`` and ``spec`` gave; the configuration must be the same."""
        try:
            known = sorted((int(number), label) for label, number in spec["known"])
            labels = Labels(label for _, label in known)
        except KeyError as error:
            raise BadState(f"the saved classifier lacks {error}: it is damaged") from error
        except (TypeError, ValueError) as error:
            raise BadState(f"the labels of the saved classifier are damaged: {error}") from error
        own = {k.removeprefix(_NOVELTY): v for k, v in tensors.items() if k.startswith(_NOVELTY)}
        with self._changing:
            self.learner.load_state(
                {k: v for k, v in tensors.items() if not k.startswith(_NOVELTY)}
            )
            if self.learner.labels != [number for number, _ in known]:
                raise BadState("the saved classifier and its learner have other classes")
            self.learner.outputs.renumber()
            self.labels = labels
            self.novelty = Novelty()
            if own:  # files of earlier versions have none
                self.novelty.load_state(own)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_changing"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._changing = threading.Lock()

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
        tensors, document = checkpoint.read(path)
        changed = checkpoint.differences(document["circumstances"])
        if changed:
            warnings.warn(f"not exact: {'; '.join(changed)}", NotExact, stacklevel=2)
        spec = document["spec"]
        saved = build.read_configuration(spec, learner)
        moved = {"weights": weights} if weights is not None else {}
        chosen = build.rebuild_backbone(saved, backbone, threads=threads, device=device, **moved)
        if chosen.key != spec.get("G"):
            raise build.other_backbone("this classifier", saved)
        for change in build.changes_of(saved, chosen):
            warnings.warn(f"not exact: {change}", NotExact, stacklevel=2)
        classifier = cls(saved, backbone=chosen)
        classifier.restore(tensors, spec)
        try:
            classifier.refused = spec.get("refused", REFUSED)  # files of earlier versions have none
        except (TypeError, BadSetting) as error:
            raise BadState(f"{path} is damaged: {error}") from error
        return classifier
