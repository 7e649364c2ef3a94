"""Features and labels in, answers out: a learner, the labels of its classes, what is unusual."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from verse.doctor import Report, diagnose, group_holds
from verse.kernels.interrupts import defer_interrupt
from verse.labels import Labels, check_label
from verse.learners import Learner
from verse.novelty import (
    BLANK_NOVELTY,
    REFUSED,
    Novelty,
    check_share,
    due,
    freshness,
    measure_novelty,
    measured_features,
)
from verse.saved import read_labels
from verse.types import Answer, BadImage, BadState, Label, Prediction

_NOVELTY = "novelty."  # prefix of its tensors in a saved state


class FeatureClassifier:
    """Everything that changes while a classifier is taught; learner and labels change together.

    Parameters
    ----------
    learner
        The method, having learned nothing.

    >>> from verse import backbones, learners
    >>> F = backbones.identity((2,)).F
    >>> classifier = FeatureClassifier(learners.build("ncm", F, None))
    >>> classifier.learn_feature(torch.tensor([0.0, 1.0]), "mug")
    >>> classifier.predict_feature(torch.tensor([0.0, 1.0])).label
    'mug'
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.labels = Labels()
        self.novelty = Novelty()
        self.refused = REFUSED
        self._changing = threading.Lock()  # held while learner and labels change together

    # ---- teaching ---------------------------------------------------------------------------

    def learn_feature(self, z: Tensor, label: Label) -> None:
        """Learn from a feature that ``features`` made."""
        self.learn_prepared(z, check_label(label))

    def learn_prepared(self, z: Tensor, label: Label) -> None:
        """The same for a label that ``check_label`` gave."""
        with defer_interrupt(), self._changing:  # the label and the sample belong together
            mark = self.novelty.mark()
            try:
                y, new = self.labels.number_or_next(label), label not in self.labels
                self.novelty.show(y, new=new)
                # measured before it is learned: a frame that was taught looks too usual
                if not new and due(self.novelty, self.samples, len(self.labels)):
                    fresh = freshness(self.learner, z, y)
                    self.novelty.observe(measure_novelty(self.learner, z.unsqueeze(0)), fresh)
                self.learner.learn_one(z, y)
            except BaseException:
                self.novelty.undo(mark)
                raise
            self.labels.add(label)

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
        self.novelty.end_hold()

    # ---- answering --------------------------------------------------------------------------

    def predict_feature(self, z: Tensor) -> Prediction:
        """The answer for a feature that ``features`` made."""
        return self._name(self._weigh(z))

    def ask_feature(self, z: Tensor, *, blank: bool = False) -> Answer:
        """The same for a feature that ``features`` made; a ``blank`` picture is never known."""
        probabilities = self._weigh(z)
        best = self._name(probabilities)
        if best.label is None:
            return Answer(None, None, False, math.inf, {}, best.step)
        measures = measure_novelty(self.learner, z.unsqueeze(0), probabilities)
        novelty = float(self.novelty.judge(measures, refused=self.refused))
        if blank:
            novelty = max(novelty, BLANK_NOVELTY)
        label = best.label if novelty <= 1 else None
        return Answer(label, best.label, novelty <= 1, novelty, best.probabilities, best.step)

    def _weigh(self, z: Tensor) -> Tensor:
        """The probability of each class [1, classes]."""
        # a sum is one pass and keeps every NaN and infinity; only if it is odd look closer
        if not math.isfinite(float(z.sum())) and not bool(torch.isfinite(z).all()):
            raise BadImage("the feature contains NaN or infinite values: there is no answer to it")
        return self.learner.predict_proba_many(z.unsqueeze(0))

    def _name(self, probabilities: Tensor) -> Prediction:
        known = zip(self.learner.labels, probabilities[0].tolist(), strict=True)
        p = {self.labels.name(y): value for y, value in known}
        return Prediction(max(p, key=p.__getitem__) if p else None, p, self.samples)

    @property
    def refused(self) -> float:
        """The share of known frames that ``ask`` may call unknown."""
        return self._refused

    @refused.setter
    def refused(self, share: float) -> None:
        self._refused = check_share(share)

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

    # ---- state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """Everything learned, as tensors."""
        novelty = {_NOVELTY + name: value for name, value in self.novelty.state().items()}
        return self.learner.state() | novelty

    def follow(self, other: FeatureClassifier) -> None:
        """Answer as another classifier of the same configuration does now."""
        with self._changing:
            self.learner.follow(other.learner)
            self.novelty.follow(other.novelty)
            self.labels = Labels(other.labels.names)
            self._refused = other.refused

    def restore(self, tensors: dict[str, Tensor], spec: Mapping[str, Any]) -> None:
        """Become what ``state`` and ``spec`` gave; the configuration must be the same."""
        numbers, labels = read_labels(spec)
        own = {k.removeprefix(_NOVELTY): v for k, v in tensors.items() if k.startswith(_NOVELTY)}
        with self._changing:
            self.learner.load_state(
                {k: v for k, v in tensors.items() if not k.startswith(_NOVELTY)}
            )
            if self.learner.labels != numbers:
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
