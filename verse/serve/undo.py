"""Undo several samples: all or none."""

from __future__ import annotations

from collections.abc import Sequence

from verse.durable import DurableClassifier
from verse.durable.errors import TooLate
from verse.types import Label


def undo_samples(classifier: DurableClassifier, seqs: Sequence[int]) -> list[tuple[int, Label]]:
    """(number, label) of each, newest first; one that cannot be undone is an error for all.

    >>> import tempfile, torch, verse
    >>> classifier = verse.open(tempfile.mkdtemp(), backbone=verse.backbones.identity((3,)))
    >>> seqs = [classifier.learn_feature(torch.ones(3), label) for label in ("mug", "cup")]
    >>> undo_samples(classifier, seqs), classifier.samples
    ([(2, 'cup'), (1, 'mug')], 0)
    >>> classifier.close()
    """
    newest_first = sorted(set(seqs), reverse=True)
    return list(zip(newest_first, classifier.undo_many(newest_first), strict=True))


def undo_last(classifier: DurableClassifier, count: int) -> list[tuple[int, Label]]:
    """The latest ``count`` samples."""
    undoable = classifier.undoable
    if count > len(undoable):
        raise TooLate(f"{count} samples cannot be undone: only the latest {len(undoable)} can")
    return undo_samples(classifier, undoable[len(undoable) - count :])
