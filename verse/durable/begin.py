"""A new directory that begins with what a classifier has learned elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verse import checkpoint
from verse.backbones import Backbone
from verse.classifier import StreamClassifier
from verse.durable.directory import Directory
from verse.durable.new_directory import make_directory, require_new
from verse.durable.opening import Record
from verse.durable.state import State
from verse.novelty import KeepsStatistics
from verse.types import BadState, Label


def begin(
    directory: str | Path,
    source: str | Path | StreamClassifier,
    *,
    backbone: Backbone | None = None,
    weights: str | Path | None = None,
    learner: str | None = None,
) -> StreamClassifier:
    """Create a directory from a classifier, or from a file that ``save`` wrote.

    All of it or nothing: the directory takes its name when it is whole. What was learned elsewhere
    cannot be undone there. Returns the classifier; ``open`` opens the directory.

    >>> import tempfile, torch
    >>> from verse import backbones
    >>> taught = StreamClassifier(backbone=backbones.identity((3,)))
    >>> taught.learn_one(torch.ones(3), "mug")
    >>> folder = Path(tempfile.mkdtemp()) / "robot"
    >>> begin(folder, taught).samples, (folder / "journal.sqlite").exists()
    (1, True)
    """
    directory = Path(directory)
    require_new(directory, "begin in a new directory")
    if isinstance(source, StreamClassifier):
        classifier, taught = source, _count(source)
    else:
        classifier = StreamClassifier.load(
            source, backbone=backbone, weights=weights, learner=learner
        )
        taught = _read_taught(checkpoint.read(source)[1]["spec"], classifier)
    with make_directory(directory) as work:
        _write(work, classifier, taught)
    return classifier


def _write(work: Path, classifier: StreamClassifier, taught: dict[Label, int]) -> None:
    opened = Directory(work, readonly=False)
    try:
        journal, state = opened.journal, State(classifier)
        journal.set_meta("options", Record.of(classifier, keep_images=False).document())
        # an entry of its own, that nobody takes an empty journal for the beginning
        state.position = journal.add("begin", {"samples": classifier.samples})
        state.taught = taught
        journal.flush()
        opened.save(state.position, classifier.state(), state.spec(), window=0)
    finally:
        opened.close()


def _read_taught(spec: Mapping[str, Any], classifier: StreamClassifier) -> dict[Label, int]:
    if "taught" not in spec:
        return _count(classifier)
    try:
        taught = {label: int(count) for label, count in spec["taught"]}
    except (TypeError, ValueError) as error:
        raise BadState(f"the file is damaged: {error}") from error
    if set(taught) != set(classifier.classes) or min(taught.values(), default=1) < 1:
        raise BadState("the file is damaged: what was taught does not fit its classes")
    return taught


def _count(classifier: StreamClassifier) -> dict[Label, int]:
    """Samples of each class. A learner without statistics knows those that it remembers."""
    if isinstance(classifier.learner, KeepsStatistics):
        counts = classifier.learner.averages.counts.tolist()
        return dict(zip(classifier.classes, counts, strict=True))
    return {label: classifier.memory_counts().get(label, 0) for label in classifier.classes}
