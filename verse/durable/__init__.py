"""open(path): a classifier that lives in a directory and survives being killed at any moment.

Belongs here: what keeps a classifier safe on disk: the journal, checkpoints, recovery, backups.
Does not belong here: how a sample is learned; that is done by public methods of a
``StreamClassifier``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from verse.backbones import Backbone
from verse.configuration import Configuration, Options
from verse.durable.archive import backup, restore
from verse.durable.begin import begin
from verse.durable.classifier import DurableClassifier
from verse.durable.errors import (
    JournalFull,
    JournalLost,
    KeyUsed,
    Locked,
    NotWiped,
    Repaired,
    Taken,
    TooLate,
)
from verse.durable.journal_images import THUMBNAILS
from verse.durable.lesson import Lesson, Outcome
from verse.durable.salvage import salvage

__all__ = [
    "THUMBNAILS",
    "DurableClassifier",
    "JournalFull",
    "JournalLost",
    "KeyUsed",
    "Lesson",
    "Locked",
    "NotWiped",
    "Outcome",
    "Repaired",
    "Taken",
    "TooLate",
    "backup",
    "begin",
    "open",
    "restore",
    "salvage",
]


def open(  # noqa: A001
    path: str | Path,
    configuration: Configuration | None = None,
    *,
    durable: str = "each",
    keep_images: bool = False,
    keep: str | None = None,
    keep_bytes: int | None = None,
    readonly: bool = False,
    reread: bool = False,
    backbone: str | Backbone | None = None,
    **options: Unpack[Options],
) -> DurableClassifier:
    """Open a durable classifier, or begin one if the directory is new. See ``DurableClassifier``.

    >>> import tempfile, torch
    >>> from verse import backbones
    >>> folder = tempfile.mkdtemp()
    >>> with open(folder, backbone=backbones.identity((3,))) as classifier:
    ...     classifier.learn_one(torch.ones(3), "mug")
    1
    >>> with open(folder, backbone=backbones.identity((3,))) as classifier:
    ...     classifier.classes
    ['mug']
    """
    return DurableClassifier(
        path,
        configuration,
        durable=durable,
        keep_images=keep_images,
        keep=keep,
        keep_bytes=keep_bytes,
        readonly=readonly,
        reread=reread,
        backbone=backbone,
        **options,
    )
