"""Two classifiers become one: ``merge``.

``StreamClassifier.save`` writes a file that can be taught further on any machine; robots that were
taught apart share what they know by merging such files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import torch

from verse.classifier import StreamClassifier
from verse.labels import check_label
from verse.learners.base import Learner
from verse.types import BadLabel, BadSetting, Label

STEPS = 500
"""Samples that the network learns again from the joint memory."""

SAME = ("learner", "settings", "memory_dtype")  # what two configurations must share


class Taught(Protocol):
    """A ``StreamClassifier``, or a durable one."""

    def copy(self) -> StreamClassifier:
        """A classifier that has learned the same."""
        ...


def merge(
    a: Taught,
    b: Taught,
    *,
    rename_b: Mapping[Label, Label] | None = None,
    separate: bool = False,
    steps: int = STEPS,
) -> StreamClassifier:
    """One classifier that knows what two know; neither of them changes.

    Statistics are added: except for rounding they are those of one classifier that was taught both
    streams. Memory takes in the samples of ``b`` by its own rule. The network begins with the
    outputs of both and is trained on the joint memory. The budget of memory, the seed and the share
    of known frames that may be refused are those of ``a``.

    Parameters
    ----------
    a, b
        Two classifiers with the same backbone, learner and settings.
    rename_b
        Other labels for classes of ``b``. Otherwise the same label is the same class.
    separate
        A label that both have stands for two classes: that of ``b`` becomes "LABEL (2)".
    steps
        How many samples the network learns again from the joint memory.

    >>> import torch
    >>> from verse import backbones
    >>> one, two = (StreamClassifier(backbone=backbones.identity((4,))) for _ in range(2))
    >>> for t in range(20):
    ...     one.learn_one(torch.eye(4)[t % 2] * 3, ["mug", "cup"][t % 2])
    ...     two.learn_one(torch.eye(4)[2 + t % 2] * 3, ["pen", "key"][t % 2])
    >>> both = merge(one, two)
    >>> both.classes, both.samples, both.predict_one(torch.eye(4)[2] * 3)
    (['mug', 'cup', 'pen', 'key'], 40, 'pen')
    """
    if steps < 0:
        raise BadSetting(f"steps must be a whole number of at least 0, not {steps}")
    merged, other = a.copy(), b.copy()
    _check_fit(merged, other)
    labels = name_classes(merged.classes, other.classes, rename_b or {}, separate=separate)
    numbers = [merged.labels.add(label) for label in labels]
    merge_learners(merged.learner, other.learner, numbers, steps=steps)
    merged.novelty.absorb(other.novelty)
    return merged


@runtime_checkable
class Mergeable(Protocol):
    """What a learner's class has that can take over what another one has learned."""

    def absorb(self, other: Learner, outputs: Sequence[int], *, steps: int) -> None:
        """Take over what another learner of the same settings has learned of its classes, which
        are ``outputs`` here. A network may then be trained for ``steps`` on the joint memory."""
        ...


@torch.no_grad()
def merge_learners(learner: Learner, other: Learner, labels: Sequence[int], *, steps: int) -> None:
    """One learner that was taught both streams; ``labels`` are its own for the outputs of the
    other. After an error it must not be used any more."""
    if not isinstance(learner, Mergeable):
        raise BadSetting(f"{learner.name} has no way to merge classifiers: verse-joint has one")
    for y in labels:
        if y not in learner.outputs.of:
            learner.add_label(y)
    learner.absorb(other, [learner.outputs.of[y] for y in labels], steps=steps)
    learner.samples += other.samples
    known = [r.largest for r in (learner.range, other.range) if r.largest is not None]
    learner.range.largest = max(known, default=None)


def _check_fit(a: StreamClassifier, b: StreamClassifier) -> None:
    if a.backbone.key != b.backbone.key:
        raise BadSetting(
            f"they cannot be merged: one was taught with {a.configuration.backbone} at "
            f"{a.configuration.at}, the other with {b.configuration.backbone} at "
            f"{b.configuration.at} or other weights, and their features do not fit"
        )
    for name in SAME:
        mine, theirs = getattr(a.configuration, name), getattr(b.configuration, name)
        if mine != theirs:
            raise BadSetting(
                f"they cannot be merged: {name} is {mine!r} in one, {theirs!r} in the other"
            )


def name_classes(
    a: Iterable[Label], b: Iterable[Label], rename_b: Mapping[Label, Label], *, separate: bool
) -> list[Label]:
    """The labels of the classes of ``b`` after merging them with those of ``a``.

    >>> name_classes(["mug"], ["mug", "cup"], {"cup": "small cup"}, separate=True)
    ['mug (2)', 'small cup']
    """
    taken, theirs = set(a), list(b)
    for label in rename_b:
        if label not in theirs:
            raise BadLabel(f"there is no class {label!r} in the second; there are {theirs}")
    used = taken | set(theirs) | set(rename_b.values())
    named: list[Label] = []
    for label in theirs:
        new = check_label(rename_b[label]) if label in rename_b else label
        if separate and label not in rename_b and label in taken:
            number = 2
            while (new := f"{label} ({number})") in used:
                number += 1
            used.add(new)
        named.append(new)
    return named
