"""The directory of a durable classifier: its lock, its journal, and its checkpoint files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock
from torch import Tensor

from verse import checkpoint, paths
from verse.durable.errors import JournalFull, JournalLost, Locked, NotWiped
from verse.durable.journal import CHECKPOINT, Journal
from verse.types import BadSetting, BadState

WIPE_SECONDS = 2.0  # a reader at work holds the old log for a moment
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
        self.closed = False
        self.keep = 0  # entries that stay beyond the undo window, so that they can be forgotten
        self.unwiped = False  # does a reader hinder the wiping?
        if readonly and not (path / "journal.sqlite").exists():
            self._refuse_remains(0)
            raise BadState(f"there is no classifier in {path}")
        self._lock = None if readonly else lock_directory(path)
        try:
            if not readonly and not _holds_something(path / "journal.sqlite"):
                self._refuse_remains(0)
            self.journal = Journal(path / "journal.sqlite", readonly=readonly)
        except BaseException:
            self._release()
            raise
        if not readonly:
            try:
                self._refuse_remains(self.journal.last)
            except BaseException:
                self.close()
                raise

    def _refuse_remains(self, last: int) -> None:
        """A sound checkpoint of later than the journal's end: the journal is not the one that
        belongs to it, and beginning a new one would throw away what was learned."""
        for file in self.path.glob("checkpoint-*.verse"):
            if CHECKPOINT.fullmatch(file.name) and int(file.name[11:23]) > last:
                with suppress(BadState):
                    checkpoint.read(file)
                    raise JournalLost(
                        f"the journal of {self.path} is missing or older than {file.name}; nothing "
                        "was changed: restore a backup, or go on from that checkpoint with "
                        f"verse salvage {self.path}"
                    )

    def starts(self, before: int | None = None) -> list[Start]:
        """Where replaying can begin (before an entry, if given), the shortest way first."""
        listed: list[Start] = [
            start for start in self.journal.checkpoints() if before is None or start[0] < before
        ]
        return listed + ([(0, None)] if self.journal.reaches(0) else [])

    def load(self, position: int, file: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """(tensors, spec) of a checkpoint."""
        tensors, document = checkpoint.read(self.path / file)
        if document["spec"].get("position") != position:
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

        With a window of 0 nothing older stays; ``wipe`` removes it from the log, too.
        """
        self.journal.flush()
        base, keep = self._select_checkpoints(position, window) if window else (position, [])
        file = f"checkpoint-{position:012d}.verse"
        try:
            checkpoint.write(self.path / file, tensors, spec)
            self.journal.record_checkpoint(position, file, keep=keep, drop_through=base, meta=meta)
        except (OSError, JournalFull) as error:
            raise JournalFull(f"cannot write {file} ({error}): free some disk space") from error
        self.remove_old_files()

    def _select_checkpoints(self, position: int, window: int) -> tuple[int, list[int]]:
        """(where an undo begins, checkpoints to keep): the newest one behind the window, the one
        after it, which is the next to fall behind, and the newest, for an undo of few samples."""
        positions = sorted(at for at, _ in self.starts())
        behind = (at for at in reversed(positions) if self.journal.samples_after(at) >= window)
        base = next(behind, positions[0])
        base = min([base, *(at for at in positions if position - at <= self.keep)])
        later = [at for at in positions if base < at < position]
        more = _far_apart(base, later, position) if self.keep else []
        return base, [base, *later[:1], *later[-1:], *more]

    def wipe(self, seconds: float = 0) -> None:
        """Cut the log, which may hold what was forgotten; wait up to ``seconds`` for readers."""
        self.unwiped, end = True, time.monotonic() + seconds
        while not self.journal.database.wipe_log():
            if time.monotonic() >= end:
                raise NotWiped("a reader holds on to the old log: it is cut when that has ended")
            time.sleep(0.02)
        self.journal.clear_wipe()
        self.unwiped = False

    def remove_old_files(self) -> None:
        """Checkpoints that count no more, and what a killed process left half written."""
        listed = {file for _, file in self.journal.checkpoints()}
        for old in [*self.path.glob("checkpoint-*.verse"), *self.path.glob(".*.part")]:
            if old.name not in listed:
                with suppress(OSError):
                    old.unlink()

    def close(self) -> None:
        self.closed = True
        self.journal.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _holds_something(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _far_apart(base: int, later: Sequence[int], position: int) -> list[int]:
    """Eight of them at most, so that replaying never begins much too early."""
    kept, latest = [], base
    for at in later:
        if at - latest >= (position - base) / 8:
            kept.append(at)
            latest = at
    return kept


def lock_directory(path: Path) -> filelock.BaseFileLock:
    if path.exists() and not path.is_dir():
        raise BadSetting(f"{path} is a file: a durable classifier is a folder")
    if not path.exists():
        path.mkdir(parents=True, exist_ok=True)  # another process may begin it just now
        paths.flush_folder(path.absolute().parent)
    lock = filelock.FileLock(path / "lock", thread_local=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise Locked(
            f"{path} is open for writing already, in this process or another: close that first, or "
            "open with readonly=True"
        ) from None
    return lock
