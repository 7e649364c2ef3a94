"""open(path): a classifier that lives in a directory and survives being killed at any moment."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from verse.backbones import Backbone
from verse.durable.archive import backup, restore
from verse.durable.classifier import DurableClassifier
from verse.durable.errors import JournalFull, Locked, Repaired, Taken, TooLate
from verse.durable.lesson import Lesson, Outcome
from verse.durable.options import Options

__all__ = [
    "DurableClassifier",
    "JournalFull",
    "Lesson",
    "Locked",
    "Options",
    "Outcome",
    "Repaired",
    "Taken",
    "TooLate",
    "backup",
    "open",
    "restore",
]


def open(  # noqa: A001
    path: str | Path,
    *,
    durable: str = "each",
    keep_images: bool = False,
    readonly: bool = False,
    reread: bool = False,
    backbone: str | Backbone | None = None,
    threads: int | None = None,
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
        durable=durable,
        keep_images=keep_images,
        readonly=readonly,
        reread=reread,
        backbone=backbone,
        threads=threads,
        **options,
    )
