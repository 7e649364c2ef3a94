"""The directory of a durable classifier: its lock, its journal, and its checkpoint files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock
from torch import Tensor

from verse import checkpoint
from verse.durable.errors import JournalFull, Locked
from verse.durable.journal import Journal
from verse.types import BadState

Start = tuple[int, str | None]
"""Where replaying begins: a position in the journal, and its checkpoint (None: from nothing)."""


class Directory:
    """One writer or any number of readers of a directory.

    >>> import tempfile, torch
    >>> directory = Directory(Path(tempfile.mkdtemp()), readonly=False)
    >>> directory.journal.add("learn", {"label": "mug"}, b"z")
    1
    >>> directory.save(1, {"w": torch.ones(2)}, {"position": 1}, window=100)
    >>> directory.starts()
    [(1, 'checkpoint-000000000001.verse'), (0, None)]
    >>> directory.close()
    """

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.path = path
        if readonly and not (path / "journal.sqlite").exists():
            raise BadState(f"there is no classifier in {path}")
        self._lock = None if readonly else _locked(path)
        try:
            self.journal = Journal(path / "journal.sqlite", readonly=readonly)
        except BaseException:
            self._release()
            raise

    def starts(self, before: int | None = None) -> list[Start]:
        """Where replaying can begin (before an entry, if given), the shortest way first."""
        listed: list[Start] = [
            start for start in self.journal.checkpoints() if before is None or start[0] < before
        ]
        return listed + ([(0, None)] if self.journal.reaches(0) else [])

    def load(self, position: int, file: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """(tensors, spec) of a checkpoint."""
        tensors, document = checkpoint.read(self.path / file)
        if document["spec"]["position"] != position:
            raise BadState(f"{file} is damaged: it does not belong to entry {position}")
        return tensors, document["spec"]

    def save(
        self,
        position: int,
        tensors: dict[str, Tensor],
        spec: dict[str, Any],
        *,
        window: int,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a checkpoint; keep what the latest ``window`` samples need to be undone.

        With a window of 0 nothing older stays, in no file.
        """
        self.journal.flush()
        base, keep = self._needed(position, window) if window else (position, [])
        file = f"checkpoint-{position:012d}.verse"
        try:
            checkpoint.write(self.path / file, tensors, spec)
            self.journal.record_checkpoint(position, file, keep=keep, drop_through=base, meta=meta)
        except (OSError, JournalFull) as error:
            raise JournalFull(f"cannot write {file} ({error}): free some disk space") from error
        self.remove_old_files()
        if not window:
            self._wipe()

    def _needed(self, position: int, window: int) -> tuple[int, list[int]]:
        """(where an undo begins, checkpoints to keep): the newest one behind the window, and the
        one after it, which is the next to fall behind."""
        positions = sorted(at for at, _ in self.starts())
        behind = [at for at in positions if self.journal.samples_after(at) >= window]
        base = behind[-1] if behind else positions[0]
        return base, [base, *[at for at in positions if base < at < position][:1]]

    def _wipe(self) -> None:
        for _ in range(100):  # a reader at work holds the old log for a moment
            if self.journal.database.wipe_log():
                return
            time.sleep(0.05)
        raise JournalFull("a reader holds on to the old log: close it, then open this again")

    def remove_old_files(self) -> None:
        """Checkpoints that count no more, and what a killed process left half written."""
        listed = {file for _, file in self.journal.checkpoints()}
        for old in [*self.path.glob("checkpoint-*.verse"), *self.path.glob(".*.part")]:
            if old.name not in listed:
                with suppress(OSError):
                    old.unlink()

    def close(self) -> None:
        self.journal.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _locked(path: Path) -> filelock.BaseFileLock:
    if not path.exists():
        path.mkdir(parents=True)
        checkpoint.flush_folder(path.absolute().parent)
    lock = filelock.FileLock(path / "lock", thread_local=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise Locked(
            f"{path} is open for writing in another process: close that first, or open with "
            "readonly=True"
        ) from None
    return lock
