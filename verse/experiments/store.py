"""Finished runs on disk: one file each, named by the hash of its record, written at once or not."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from verse.experiments.result import Result, write_document
from verse.types import BadState

ID_LENGTH = 16


class Store:
    """A folder of results.

    ``.partial`` inside it holds the checkpoints of runs in flight.

    >>> import tempfile
    >>> Store(Path(tempfile.mkdtemp())).ids()
    set()
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def file(self, identity: str) -> Path:
        """Where a run's result is, or will be."""
        return self.folder / f"{identity}.json"

    def ids(self) -> set[str]:
        """The runs that are finished."""
        names = (path.stem for path in self.folder.glob("*.json"))
        return {name for name in names if len(name) == ID_LENGTH and int_or_none(name) is not None}

    def save(self, document: dict[str, Any]) -> Path:
        """Keep one result document."""
        path = self.file(document["summary"]["run"])
        write_document(path, document)
        return path

    def load(self, identity: str) -> Result:
        """One result."""
        return Result.load(self.file(identity))

    def results(self, only: Collection[str] | None = None) -> list[Result]:
        """All results, or these, ordered by identity so that reports do not depend on the disk."""
        if not self.folder.is_dir():
            raise BadState(f"there is no folder {self.folder}: give one with finished runs")
        wanted = self.ids() if only is None else self.ids() & set(only)
        return [self.load(identity) for identity in sorted(wanted)]

    def partial(self, identity: str) -> Path:
        """Where a run in flight keeps its checkpoint."""
        return self.partials() / f"{identity}.checkpoint"

    def partials(self) -> Path:
        """The folder of runs in flight; version control leaves it alone."""
        folder = self.folder / ".partial"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n")
        return folder

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """While inside, no other process fills this store: else a run could be done twice."""
        path = self.partials() / "lock"
        with open(path, "a+", encoding="ascii") as file:
            if not _lock(file):
                file.seek(0)
                raise BadState(
                    f"{self.folder} is being filled by another verse compare (process "
                    f"{file.read().strip() or 'unknown'}); wait for it, give both recipes to one "
                    "command, or choose another folder with --results"
                )
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield


def int_or_none(text: str) -> int | None:
    """The number that hexadecimal digits write."""
    try:
        return int(text, 16)
    except ValueError:
        return None


def _lock(file: IO[str]) -> bool:
    """Take the lock; the system lets go of it when the process ends, however it ends."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
