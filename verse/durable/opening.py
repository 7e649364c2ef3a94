"""Opening a directory: what it was begun with, and whether what is asked for now fits it."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from verse import checkpoint
from verse.backbones import Backbone
from verse.build import (
    build_backbone,
    configure,
    other_backbone,
    read_configuration,
    rebuild_backbone,
    settings_in_force,
)
from verse.classifier import StreamClassifier
from verse.configuration import Configuration, Options
from verse.durable.errors import JournalFull
from verse.durable.journal import Journal
from verse.memory.budget import budget
from verse.saved import NotExact
from verse.types import BadSetting, BadState

KEEP = ("none", "features")
KEEP_BYTES = 1_000_000_000


@dataclass(frozen=True)
class Request:
    """The options with which a directory is opened; any can be missing."""

    path: Path
    configuration: Configuration | None
    given: str | Backbone | None  # the backbone
    named: Options  # options by their names
    keep_images: bool
    readonly: bool
    reread: bool
    keep: str | None = None
    keep_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.keep not in (None, *KEEP):
            raise BadSetting(f"keep {self.keep!r}: use one of {', '.join(KEEP)}")
        if self.keep_bytes is not None and self.keep_bytes < 1:
            raise BadSetting(f"keep_bytes {self.keep_bytes}: a number of bytes above 0")
        configure(self.configuration, None, self.named)  # refuses unknown ones

    @property
    def options(self) -> dict[str, Any]:
        """All that was asked for, the backbone excepted."""
        asked: dict[str, Any] = {}
        if self.configuration is not None:
            asked = {f.name: getattr(self.configuration, f.name) for f in fields(Configuration)}
        asked.pop("backbone", None)
        return asked | dict(self.named)

    @property
    def backbone(self) -> str | Backbone | None:
        """The backbone that was asked for, by its name or built already."""
        if self.given is None and self.configuration is not None:
            return self.configuration.backbone
        return self.given


@dataclass(frozen=True)
class Record:
    """What a directory remembers of how it was begun; ``key`` is that of the backbone."""

    configuration: Configuration
    key: str
    keep_images: bool
    keep: str = "none"
    keep_bytes: int = KEEP_BYTES

    @classmethod
    def of(cls, classifier: StreamClassifier, *, keep_images: bool) -> Record:
        return cls(classifier.configuration, classifier.backbone.key, keep_images)

    def with_request(self, request: Request) -> Record:
        """What is kept can be chosen anew at any time."""
        keep, limit = request.keep or self.keep, request.keep_bytes or self.keep_bytes
        return replace(self, keep=keep, keep_bytes=limit)

    @classmethod
    def read(cls, journal: Journal, learner: str | None) -> Record | None:
        """From the journal; None if nothing was written yet."""
        saved = journal.meta("options")
        if saved is None:
            return None
        configuration = read_configuration(saved, learner)
        # earlier versions wrote down those that were given
        settings = settings_in_force(configuration.learner, configuration.settings)
        key, keeps = saved.get("G"), saved.get("keep_images")
        keep, limit = saved.get("keep", "none"), saved.get("keep_bytes", KEEP_BYTES)
        if keep not in KEEP or not isinstance(limit, int):
            raise BadState("the options of the directory are damaged: restore a backup")
        settled = replace(configuration, settings=settings)
        return cls(settled, str(key), bool(keeps), keep, limit)

    def document(self) -> dict[str, Any]:
        kept = {"keep_images": self.keep_images, "keep": self.keep, "keep_bytes": self.keep_bytes}
        return self.configuration.document() | {"G": self.key, **kept}


def build_classifier(request: Request, journal: Journal) -> tuple[StreamClassifier, Record]:
    """The classifier of a directory, having learned nothing yet, and how the directory was begun.

    A new directory writes that down.
    """
    record = Record.read(journal, request.options.get("learner"))
    if record is not None:
        return reopen(request, record), record.with_request(request)
    if journal.last or request.readonly:
        raise BadState(f"{request.path} has lost its options: restore a backup")
    classifier = StreamClassifier(request.configuration, backbone=request.backbone, **request.named)
    record = Record.of(classifier, keep_images=request.keep_images).with_request(request)
    journal.set_meta("options", record.document())
    return classifier, record


def reopen(request: Request, record: Record) -> StreamClassifier:
    """The classifier that a directory remembers, having learned nothing yet; what does not fit it
    is an error, unless kept images may be read again with another backbone."""
    saved = record.configuration
    movable = ("at", "precision", "batchnorm") if request.reread else ()
    asked = {name: v for name, v in request.options.items() if name not in movable}
    if isinstance(asked.get("capacity"), str):  # in words, which the record holds as numbers
        limits = {name: asked.get(name) for name in ("per_class", "byte_limit")}
        meant = budget(asked.pop("capacity"), **limits)
        asked |= {name: value for name, value in meant.items() if value is not None}
    difference = saved.differs_from(asked)
    if difference is not None:
        raise BadSetting(
            f"{request.path}: {difference}; leave the option out, or begin another directory"
        )
    backbone = _backbone(request, saved)
    if backbone.key == record.key:
        return StreamClassifier(saved, backbone=backbone)
    if not request.reread or request.readonly:
        error = other_backbone(str(request.path), saved)
        way_out = "; reread=True teaches it anew from the kept images"
        raise BadState(f"{error}{way_out}") if record.keep_images else error
    if not record.keep_images:
        raise BadState("no images were kept, so they cannot be read again")
    moved = replace(saved, weights=request.options.get("weights"))
    return StreamClassifier(moved, backbone=backbone)


def _backbone(request: Request, saved: Configuration) -> Backbone:
    given, options = request.backbone, request.options
    if isinstance(given, Backbone):
        return given
    same = given in (None, saved.backbone)
    precision = options.get("precision", "auto")
    changes: dict[str, Any] = {
        "at": options.get("at") or (saved.at if same else None),
        "weights": options.get("weights") or (saved.weights if same else None),
        "precision": saved.precision if precision == "auto" else precision,
        "threads": options.get("threads"),
        "device": options.get("device", "cpu"),
    }
    if not same:
        return build_backbone(replace(saved, backbone=str(given), **changes))
    return rebuild_backbone(saved, None, **changes)


def note_record(journal: Journal, record: Record) -> None:
    """Write down what an earlier version did not."""
    if journal.meta("options") != record.document():
        with suppress(JournalFull):  # then at the next opening
            journal.set_meta("options", record.document())


def note_circumstances(journal: Journal, *, stacklevel: int) -> None:
    """Store versions and threads; warn if they differ from the last time."""
    saved, now = journal.meta("circumstances"), checkpoint.circumstances()
    if saved is not None and checkpoint.differences(saved):
        changed = "; ".join(checkpoint.differences(saved))
        warnings.warn(f"not exact: {changed}", NotExact, stacklevel=stacklevel)
    if saved != now:
        journal.set_meta("circumstances", now)
