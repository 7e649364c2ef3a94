"""The journal of a durable classifier: what was done, in order, each entry safe before it counts.

SQLite in write-ahead mode holds the entries; a commit is on disk when it returns. Every entry
carries a checksum of its own, and a high-water mark beside the database tells when entries that
were acknowledged are missing (SQLite alone takes a damaged log for a shorter one).
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verse.types import BadState, VerseError

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, arguments TEXT NOT NULL,
    z BLOB, fate TEXT NOT NULL DEFAULT 'kept', checksum BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_seq ON keys (seq);
CREATE TABLE IF NOT EXISTS checkpoints (position INTEGER PRIMARY KEY, file TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS images (seq INTEGER PRIMARY KEY, label TEXT NOT NULL, image BLOB);
"""
KEYS_KEPT = 10_000  # idempotency keys outlive their entries, but not for ever


class JournalFull(VerseError):
    """The disk is full or failing: nothing was learned, everything before is safe."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was done. ``fate`` is "kept", "undone" or "refused"."""

    seq: int
    kind: str
    arguments: dict[str, Any]
    z: bytes | None
    fate: str


def _checksum(kind: str, arguments: str, z: bytes | None) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in (kind.encode(), arguments.encode(), z or b""):
        digest.update(struct.pack("<Q", len(part)))
        digest.update(part)
    return digest.digest()


class Journal:
    """The entries, keys and checkpoint list of one directory.

    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()) / "journal.sqlite")
    >>> journal.append("learn", {"label": "mug"}, b"z")
    1
    >>> [entry.kind for entry in journal.since(0)]
    ['learn']
    >>> journal.close()
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path = path
        address = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}"
        try:
            # one writer thread at a time by contract; it need not be the one that opened
            self._db = sqlite3.connect(
                address, uri=True, isolation_level=None, check_same_thread=False, timeout=10
            )
            if not readonly:
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=FULL")
                self._db.execute("PRAGMA secure_delete=ON")  # forgotten means gone from the file
                self._db.executescript(SCHEMA)
        except sqlite3.DatabaseError as error:
            raise BadState(f"cannot open the journal {path.name}: {error}") from error
        self._mark = None if readonly else self._open_mark()
        self._in_batch = False
        self._verify(readonly)

    # ---- damage -----------------------------------------------------------------------------

    def _open_mark(self) -> int:
        return os.open(self.path.with_name("acknowledged"), os.O_RDWR | os.O_CREAT, 0o644)

    def _verify(self, readonly: bool) -> None:
        try:
            verdict = self._db.execute("PRAGMA quick_check").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise BadState(f"the journal is damaged: {error}; restore a backup") from error
        if verdict != "ok":
            raise BadState(f"the journal is damaged: {verdict}; restore a backup")
        if readonly:
            return
        assert self._mark is not None
        raw = os.pread(self._mark, 8, 0)
        acknowledged = struct.unpack("<Q", raw)[0] if len(raw) == 8 else 0
        if acknowledged > self.last():
            raise BadState(
                f"the journal ends at entry {self.last()} but entry {acknowledged} was "
                "acknowledged: the log on disk is damaged; restore a backup"
            )

    def last(self) -> int:
        """The number of the newest entry ever written."""
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name='entries'").fetchone()
        return int(row[0]) if row else 0

    # ---- writing ----------------------------------------------------------------------------

    def append(
        self,
        kind: str,
        arguments: dict[str, Any],
        z: bytes | None = None,
        *,
        key: str | None = None,
        image: bytes | None = None,
    ) -> int:
        """Write one entry; it is on disk on return, or on ``flush`` inside a batch."""
        text = json.dumps(arguments, sort_keys=True)
        try:
            if not self._in_batch:
                self._db.execute("BEGIN IMMEDIATE")
            cursor = self._db.execute(
                "INSERT INTO entries (kind, arguments, z, checksum) VALUES (?, ?, ?, ?)",
                (kind, text, z, _checksum(kind, text, z)),
            )
            seq = int(cursor.lastrowid or 0)
            if key is not None:
                self._db.execute("INSERT INTO keys VALUES (?, ?)", (key, seq))
            if image is not None:
                label = json.dumps(arguments["label"])
                self._db.execute("INSERT INTO images VALUES (?, ?, ?)", (seq, label, image))
            if not self._in_batch:
                self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise JournalFull(
                f"cannot write the journal ({error}): nothing was learned, everything before is "
                "safe; free some disk space"
            ) from error
        if not self._in_batch:
            self.acknowledge(seq)
        return seq

    def acknowledge(self, seq: int) -> None:
        """Raise the high-water mark (survives a killed process; needs no flush of its own)."""
        assert self._mark is not None
        os.pwrite(self._mark, struct.pack("<Q", seq), 0)

    def begin_batch(self) -> None:
        """Following entries become durable together, at ``flush``."""
        if not self._in_batch:
            self._db.execute("BEGIN IMMEDIATE")
            self._in_batch = True

    def flush(self) -> None:
        """Make the batch durable: one disk flush for all its entries."""
        if self._in_batch:
            self._in_batch = False
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                raise JournalFull(
                    f"cannot write the journal ({error}): the batch is lost"
                ) from error
            self.acknowledge(self.last())

    def _roll_back(self) -> None:
        self._in_batch = False
        with suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")

    def _write(self, *statements: tuple[str, tuple[Any, ...]]) -> None:
        """Several changes, all or none."""
        self.flush()
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for statement, values in statements:
                self._db.execute(statement, values)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise JournalFull(f"cannot write the journal ({error}): nothing has changed") from error

    def refuse(self, seq: int) -> None:
        """The learner refused this entry: replaying skips it."""
        if self._in_batch:
            self._db.execute("UPDATE entries SET fate='refused' WHERE seq=?", (seq,))
        else:
            self._write(("UPDATE entries SET fate='refused' WHERE seq=?", (seq,)))

    def undo(self, seq: int) -> None:
        """Strike an entry out, with every checkpoint that contains it."""
        self._write(
            ("UPDATE entries SET fate='undone' WHERE seq=?", (seq,)),
            ("DELETE FROM checkpoints WHERE position >= ?", (seq,)),
            ("DELETE FROM images WHERE seq=?", (seq,)),
        )

    def record_checkpoint(self, position: int, file: str, *, drop_before: int) -> None:
        """A new checkpoint holds; entries and checkpoints before ``drop_before`` are dropped."""
        self._write(
            ("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (position, file)),
            ("DELETE FROM checkpoints WHERE position < ?", (drop_before,)),
            ("DELETE FROM entries WHERE seq <= ?", (drop_before,)),
            ("DELETE FROM keys WHERE seq <= ?", (position - KEYS_KEPT,)),
        )

    def drop_images(self, label: Any) -> None:
        self._write(("DELETE FROM images WHERE label=?", (json.dumps(label),)))

    def wipe_log(self) -> None:
        """Fold the write-ahead log into the database and cut it: no old page stays behind."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def set_meta(self, name: str, value: Any) -> None:
        self._write(("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, json.dumps(value))))

    # ---- reading ----------------------------------------------------------------------------

    def meta(self, name: str) -> Any:
        row = self._db.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def since(self, position: int) -> Iterator[Entry]:
        """Entries after a position, in order, each checked."""
        rows = self._db.execute(
            "SELECT seq, kind, arguments, z, fate, checksum FROM entries"
            " WHERE seq > ? ORDER BY seq",
            (position,),
        )
        for seq, kind, arguments, z, fate, checksum in rows:
            if _checksum(kind, arguments, z) != checksum:
                raise BadState(f"the journal is damaged at entry {seq}; restore a backup")
            yield Entry(seq, kind, json.loads(arguments), z, fate)

    def images(self) -> Iterator[tuple[int, Any, bytes]]:
        """Kept images in order of teaching: (seq, label, encoded image)."""
        for seq, label, image in self._db.execute("SELECT * FROM images ORDER BY seq"):
            yield seq, json.loads(label), image

    def seq_of(self, key: str) -> int | None:
        """The entry that was written with this idempotency key."""
        row = self._db.execute("SELECT seq FROM keys WHERE key=?", (key,)).fetchone()
        return int(row[0]) if row else None

    def checkpoints(self) -> list[tuple[int, str]]:
        """(position, file) of every valid checkpoint, newest first."""
        return list(
            self._db.execute("SELECT position, file FROM checkpoints ORDER BY position DESC")
        )

    def backup(self, target: Path) -> None:
        """A consistent copy, also while the original is being written."""
        with sqlite3.connect(target) as copy:
            self._db.backup(copy)
        copy.close()

    def close(self) -> None:
        self.flush()
        self._db.close()
        if self._mark is not None:
            os.close(self._mark)
            self._mark = None
