"""What remains of a directory whose journal is lost: its newest sound checkpoint."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from torch import Tensor

from verse import checkpoint, paths
from verse.configuration import Configuration
from verse.durable.database import HighWaterMark
from verse.durable.directory import lock_directory
from verse.durable.entry import meta_row
from verse.durable.journal import CHECKPOINT, Journal
from verse.types import BadSetting, BadState

PARTS = ("journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "acknowledged")


@dataclass(frozen=True)
class SalvageReport:
    """``position`` is the newest entry that is there again; ``lost`` how many were acknowledged
    after it (None: unknown); ``remains`` where all the rest was put."""

    position: int
    lost: int | None
    remains: Path


def remains(path: Path) -> list[Path]:
    """Checkpoint files, newest first."""
    return sorted((f for f in path.glob("*.verse") if CHECKPOINT.fullmatch(f.name)), reverse=True)


def salvage(path: str | Path) -> SalvageReport:
    """Begin the journal anew from the newest sound checkpoint. Nothing is deleted: the old journal
    and older checkpoints are moved to a folder inside.

    A directory whose journal is sound is left alone.
    """
    path = Path(path)
    if not path.is_dir():
        raise BadState(f"there is no directory {path}")
    lock = lock_directory(path)
    try:
        if _is_sound(path):
            raise BadSetting(f"{path} is sound: there is nothing to salvage")
        file, spec = _newest(path)
        position = int(spec["position"])
        acknowledged = _read_mark(path)
        place = path / f"remains-{time.strftime('%Y%m%d-%H%M%S')}"
        place.mkdir()
        for part in (*(path / name for name in PARTS), *remains(path)):
            if part.exists() and part != file:
                part.rename(place / part.name)
        _begin(path, file.name, position, spec)
        lost = None if acknowledged is None else max(0, acknowledged - position)
        return SalvageReport(position, lost, place)
    finally:
        lock.release()


def _is_sound(path: Path) -> bool:
    if not (path / "journal.sqlite").exists():
        return False
    try:
        journal = Journal(path / "journal.sqlite", readonly=True)
    except ValueError:
        return False
    try:
        newest = remains(path)[:1]
        return journal.meta("options") is not None and not any(
            int(file.name[11:23]) > journal.last and _read(file) is not None for file in newest
        )
    except BadState:
        return False
    finally:
        journal.close()


def _read(file: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """(tensors, spec) of a sound checkpoint."""
    try:
        tensors, document = checkpoint.read(file)
        spec = document["spec"]
        Configuration.from_document(spec)
        return (tensors, spec) if spec["position"] == int(file.name[11:23]) else None
    except (ValueError, KeyError, TypeError):
        return None


def _newest(path: Path) -> tuple[Path, dict[str, Any]]:
    for file in remains(path):
        found = _read(file)
        if found is not None:
            return file, found[1]
    raise BadState(f"{path} holds no sound checkpoint: restore a backup")


def _read_mark(path: Path) -> int | None:
    mark = HighWaterMark(path / "acknowledged", readonly=True)
    try:
        return mark.read() or None
    except BadState:
        return None
    finally:
        mark.close()


def _begin(path: Path, file: str, position: int, spec: dict[str, Any]) -> None:
    """A journal that goes on after a checkpoint."""
    known = {"G", *(field.name for field in fields(Configuration))}
    options = {name: value for name, value in spec.items() if name in known}
    journal = Journal(path / "journal.sqlite")
    try:
        journal.database.write(
            [
                ("INSERT INTO sqlite_sequence VALUES ('entries', ?)", (position,)),
                ("INSERT INTO checkpoints VALUES (?, ?)", (position, file)),
                meta_row("options", options | {"keep_images": False}),
            ]
        )
    finally:
        journal.close()
    paths.flush_folder(path)
