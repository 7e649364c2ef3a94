"""StreamClassifier: images and labels in, predictions out."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Integral
from pathlib import Path
from typing import Any, Self

from torch import Tensor

from verse import backbones, checkpoint, export, learners, memory
from verse.backbones import Backbone
from verse.kernels.interrupts import deferred_interrupt
from verse.learners import Learner
from verse.learners.allowed import JSON_NAMES
from verse.memory import Memory
from verse.types import BadLabel, BadSetting, BadState, Label, Prediction

PER_CLASS = 20
BYTE_LIMIT = 256 * 2**20


class NotExact(UserWarning):
    """A loaded classifier goes on correctly, but not bit for bit as it would have where it was."""


def check_label(label: object) -> Label:
    """A label is a non-empty string or an integer; those of numpy become Python's.

    >>> check_label("mug")
    'mug'
    """
    if isinstance(label, str):
        if not label.strip():
            raise BadLabel("a label must not be empty")
        return str(label)
    if isinstance(label, bool) or not isinstance(label, Integral):
        raise BadLabel(f"a label is a string or an integer, not {type(label).__name__}")
    return int(label)


def settings_in_force(learner: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings that a learner is built with but its seed: its defaults, and what was given.

    They are saved in full: a default that changes later changes nothing that was saved before.

    >>> settings_in_force("fine-tune", {"lr": 0.1})
    {'lr': 0.1, 'clip': 1.0}
    """
    known = learners.settings(learner).items()
    defaults = {name: setting.default for name, setting in known if name != "seed"}
    # a default that JSON has no word for (of a learner of your own) cannot be saved
    return {name: v for name, v in defaults.items() if type(v) in JSON_NAMES} | dict(given)


class StreamClassifier:
    """Teach by showing: one image and its label at a time; ask at any moment.

    ``backbone`` is a name or a ``Backbone``; ``learner`` a name, with its ``settings``; ``memory``
    a rule's name, with ``per_class`` samples for each class within ``byte_limit`` bytes, or
    ``capacity`` samples in all. Labels are kept as given, in order of arrival.

    >>> import numpy as np
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
        *,
        backbone: str | Backbone = "efficientnet-lite0",
        at: str | None = None,
        weights: str | Path | None = None,
        learner: str = "verse-lda",
        settings: Mapping[str, Any] | None = None,
        memory: str = "class-balanced",
        capacity: int | None = None,
        per_class: int | None = PER_CLASS,
        byte_limit: int | None = BYTE_LIMIT,
        memory_dtype: str = "float32",
        precision: str = "float32",
        threads: int | None = None,
        seed: int = 0,
    ) -> None:
        if isinstance(backbone, str):
            backbone = backbones.build(
                backbone, at=at, weights=weights, precision=precision, threads=threads
            )
        elif at is not None or weights is not None:
            raise BadSetting("at and weights belong to a backbone by name; yours is built already")
        self.backbone = backbone
        self.learner_name = learner
        self.learner: Learner = learners.build(
            learner,
            backbone.F,
            _memory(
                memory,
                capacity=capacity,
                per_class=None if capacity is not None else per_class,
                byte_limit=byte_limit,
                dtype=memory_dtype,
                seed=seed,
            ),
            seed=seed,
            **(settings or {}),
        )
        self._spec: dict[str, Any] = {
            "backbone": backbone.name,
            "at": backbone.at,
            "weights": str(weights) if weights is not None else None,
            "precision": backbone.F.precision,
            "batchnorm": backbone.F.batchnorm,
            "G": backbone.key,
            "learner": learner,
            "settings": settings_in_force(learner, settings or {}),
            "memory": memory,
            "capacity": capacity,
            "per_class": per_class,
            "byte_limit": byte_limit,
            "memory_dtype": memory_dtype,
            "seed": seed,
        }
        self._names: list[Label] = []  # number the learner knows a class by → label
        self._numbers: dict[Label, int] = {}
        self._changing = threading.Lock()  # held while learner and labels change together

    # ---- teaching ---------------------------------------------------------------------------

    def learn_one(self, image: object, label: Label) -> None:
        """Learn one image. If it is refused, everything is as it was before."""
        label = check_label(label)
        self.learn_feature(self.features([image])[0], label)

    def learn_many(
        self, images: Iterable[object], labels: Iterable[Label], *, overlap: bool = False
    ) -> int:
        """Learn images in this order, each once, exactly as ``learn_one``; returns how many.

        With ``overlap`` the features of the next image are computed while the current one is
        learned; ``images`` is then read one ahead.
        """
        pairs = zip(images, labels, strict=True)
        count = 0
        for z, label in self._ahead(pairs) if overlap else self._in_turn(pairs):
            self.learn_feature(z, label)
            count += 1
        return count

    def _in_turn(self, pairs: Iterable[tuple[object, Label]]) -> Iterator[tuple[Tensor, Label]]:
        for image, label in pairs:
            check_label(label)
            yield self.features([image])[0], label

    def _ahead(self, pairs: Iterable[tuple[object, Label]]) -> Iterator[tuple[Tensor, Label]]:
        """The same, G one image ahead of the learner; an image's error comes at its turn."""
        with ThreadPoolExecutor(1) as worker:
            waiting: deque[tuple[Future[Tensor], Label]] = deque()
            for image, label in pairs:
                check_label(label)
                waiting.append((worker.submit(self.features, [image]), label))
                if len(waiting) > 1:
                    z, due = waiting.popleft()
                    yield z.result()[0], due
            for z, due in waiting:
                yield z.result()[0], due

    def learn_feature(self, z: Tensor, label: Label) -> None:
        """Learn from a feature that ``features`` made."""
        label = check_label(label)
        with deferred_interrupt(), self._changing:  # the label and the sample belong together
            number = self._numbers.get(label)
            if number is None:
                self.learner.learn_one(z, len(self._names))
                self._numbers[label] = len(self._names)
                self._names.append(label)
            else:
                self.learner.learn_one(z, number)

    def consolidate(self) -> None:
        """Deferred learning of the methods that have it (GDumb, Offline, coreset VCL)."""
        with self._changing:
            self.learner.consolidate()

    def forget(self, label: Label) -> int:
        """Retire a class; its samples leave memory (weights shared with others stay)."""
        number = self._number(label)
        with self._changing:
            removed = self.learner.forget(number)
            del self._numbers[label]
        return removed

    def rename(self, label: Label, new: Label) -> None:
        """Give a class another label."""
        number, new = self._number(label), check_label(new)
        if new in self._numbers:
            raise BadLabel(f"there is a class {new!r} already: merge them instead")
        with self._changing:
            del self._numbers[label]
            self._numbers[new] = number
            self._names[number] = new

    def merge(self, label: Label, into: Label) -> int:
        """Two labels are one class: what is remembered of ``label`` becomes ``into``."""
        numbers = self._number(label), self._number(into)
        with self._changing:
            moved = self.learner.merge(*numbers)
            del self._numbers[label]
        return moved

    def _number(self, label: Label) -> int:
        if check_label(label) not in self._numbers:
            raise BadLabel(f"there is no class {label!r}; there are {self.classes}")
        return self._numbers[label]

    # ---- answering --------------------------------------------------------------------------

    def features(self, images: Sequence[object]) -> Tensor:
        """G of the images: float32 [n, …]."""
        return self.backbone.G(images)

    def predict_one(self, image: object) -> Label | None:
        """The label of an image; None before anything was learned."""
        return self.predict(image).label

    def predict_proba_one(self, image: object) -> dict[Label, float]:
        """Label → probability, for every class known now."""
        return dict(self.predict(image).probabilities)

    def predict(self, image: object) -> Prediction:
        """Label, probabilities and the step they come from."""
        return self.predict_feature(self.features([image])[0])

    def predict_many(self, images: Sequence[object]) -> list[Label | None]:
        """The label of each image."""
        if len(images) == 0:
            return []
        answers = self.learner.predict_many(self.features(images))
        return [None if a is None else self._names[a] for a in answers]

    def predict_feature(self, z: Tensor) -> Prediction:
        """The answer for a feature that ``features`` made."""
        p = {self._names[y]: v for y, v in self.learner.predict_proba_one(z).items()}
        return Prediction(max(p, key=p.__getitem__) if p else None, p, self.samples)

    @property
    def classes(self) -> list[Label]:
        """Labels known now, in order of arrival."""
        return sorted(self._numbers, key=self._numbers.__getitem__)

    @property
    def samples(self) -> int:
        """How many images were learned."""
        return self.learner.samples

    def remembered(self) -> dict[Label, int]:
        """How many samples of each class are in memory."""
        if self.learner.memory is None:
            return {}
        counts = self.learner.memory.counts()
        return {
            label: counts.get(self.learner.labels.index(n), 0) for label, n in self._numbers.items()
        }

    # ---- keeping ----------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """What rebuilds this classifier, besides the tensors of its learner."""
        return {**self._spec, "names": self._names, "known": list(self._numbers.items())}

    def save(self, path: str | Path) -> None:
        """Write everything to one file, atomically."""
        checkpoint.write(path, self.learner.state(), self.spec())

    def export(self, path: str | Path) -> Path:
        """Write G and the network that answers now to one ONNX file, with the labels inside.

        Any thread may ask while another learns: the weights are copied between two samples, and
        writing the file holds up nobody. Input and output are described in ``verse.export``.
        """
        with self._changing:
            live = list(self.learner.live)
            if not live:  # before asking for the network: statistics of nothing have none
                raise BadSetting("nothing was learned yet: teach it a class before exporting it")
            network = self.learner.network()
            labels = [self._names[self.learner.labels[output]] for output in live]
            samples = self.samples
        facts = {"learner": self.learner_name, "samples": samples}
        return export.write(path, self.backbone, network, live, labels, facts)

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
    ) -> Self:
        """Go on where ``save`` stopped, to the last bit on the same machine and versions.

        A backbone that was not built by name must be handed over again.
        """
        tensors, document = checkpoint.read(path)
        changed = checkpoint.differences(document["circumstances"])
        if changed:
            warnings.warn(f"not exact: {'; '.join(changed)}", NotExact, stacklevel=2)
        return cls.from_state(
            tensors, document["spec"], backbone=backbone, weights=weights, threads=threads
        )

    @classmethod
    def from_state(
        cls,
        tensors: dict[str, Tensor],
        spec: Mapping[str, Any],
        *,
        backbone: Backbone | None = None,
        weights: str | Path | None = None,
        threads: int | None = None,
    ) -> Self:
        """Rebuild from what ``spec`` and ``learner.state`` gave."""
        try:
            if backbone is None and spec["backbone"] not in backbones.names():
                raise BadState(
                    f"this classifier was taught with a backbone of your own ({spec['backbone']} "
                    f"at {spec['at']}): hand it over again, load(path, backbone=…)"
                )
            chosen = backbone or backbones.build(
                spec["backbone"],
                at=spec["at"],
                weights=weights if weights is not None else spec["weights"],
                precision=spec["precision"],
                batchnorm=spec.get("batchnorm", "frozen"),  # absent in files of before
                threads=threads,
            )
            if chosen.key != spec["G"]:
                raise BadState(
                    f"this classifier was taught with another backbone ({spec['backbone']} at "
                    f"{spec['at']}, other weights): its features do not fit"
                )
            for what, now in (("precision", chosen.F.precision), ("batchnorm", chosen.F.batchnorm)):
                if spec.get(what, now) != now:
                    message = f"not exact: {what} of F was {spec[what]}, is {now}"
                    warnings.warn(message, NotExact, stacklevel=3)
            classifier = cls(
                backbone=chosen,
                learner=spec["learner"],
                settings=spec["settings"],
                memory=spec["memory"],
                capacity=spec["capacity"],
                per_class=spec["per_class"],
                byte_limit=spec["byte_limit"],
                memory_dtype=spec["memory_dtype"],
                seed=spec["seed"],
            )
            classifier._spec["weights"] = spec["weights"]
            classifier._names = list(spec["names"])
            classifier._numbers = dict(spec["known"])
        except KeyError as error:
            raise BadState(f"the saved classifier lacks {error}") from error
        classifier.learner.load_state(tensors)
        return classifier


def _memory(name: str, **settings: Any) -> Memory:
    rule = memory.get(name)
    return rule(settings.pop("capacity"), **settings)
