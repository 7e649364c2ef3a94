"""The journal of a durable classifier: what was done, in order, each entry safe before it counts.

SQLite in write-ahead mode holds the entries: a commit is on disk when it returns, several entries
in one commit share one flush, and a log that was cut in the middle of a commit counts as if that
commit had never begun. What SQLite does not notice is noticed here: every row carries a checksum,
entries have no gaps, and a high-water mark beside the database tells when acknowledged entries are
missing (SQLite takes a damaged log for a shorter one).
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from verse.durable.mark import Mark
from verse.durable.rows import (
    Entry,
    Statement,
    as_row,
    checked,
    checksum,
    damaged,
    image_crc,
    meta_row,
    short_key,
)
from verse.types import BadState, VerseError

FORMAT = 1
SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB);
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, arguments TEXT NOT NULL,
    z BLOB, fate TEXT NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE keys (
    key BLOB PRIMARY KEY, seq INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_by_seq ON keys (seq);
CREATE TABLE checkpoints (position INTEGER PRIMARY KEY, file TEXT NOT NULL);
CREATE TABLE images (
    seq INTEGER NOT NULL, kind TEXT NOT NULL, label TEXT NOT NULL, image BLOB NOT NULL,
    crc INTEGER NOT NULL, PRIMARY KEY (seq, kind));
CREATE INDEX images_by_label ON images (kind, label, seq);
"""
LAYOUT = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
KEYS_KEPT = 1_000_000  # idempotency keys outlive their entries, but not for ever
THUMBNAILS = 12  # kept of each class


class JournalFull(VerseError):
    """The disk is full or failing: nothing was learned, everything before is safe."""


class Journal:
    """The entries, idempotency keys, images and checkpoint list of one directory.

    ``add`` collects entries, ``flush`` makes them durable together or raises ``JournalFull``.

    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()) / "journal.sqlite")
    >>> journal.add("learn", {"label": "mug"}, b"z", key="request 1")
    1
    >>> journal.flush()
    >>> [entry.kind for entry in journal.since(0)], journal.seq_of("request 1")
    (['learn'], 1)
    >>> journal.close()
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path, self.readonly = path, readonly
        self._pending: list[Statement] = []
        self._pending_entries: dict[int, Entry] = {}
        self._pending_keys: dict[bytes, int] = {}
        self._mark = Mark(path.with_name("acknowledged"), readonly)
        try:
            acknowledged = self._mark.read()  # before the entries: a writer may add meanwhile
            self._db = self._connect()
        except BaseException:
            self._mark.close()
            raise
        try:
            self._verify(acknowledged)
            self._next = self._last_written() + 1
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        mode = "mode=ro" if self.readonly else "mode=rwc"
        if self.readonly and not os.access(self.path.parent, os.W_OK):
            mode += "&immutable=1"  # nobody can be writing, and no lock file can be made
        try:
            # one thread at a time by contract; it need not be the one that opened
            db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?{mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=10,
            )
        except sqlite3.Error as error:
            raise BadState(f"cannot open the journal {self.path}: {error}") from error
        try:
            db.create_function("image_crc", 3, image_crc, deterministic=True)
            self._prepare(db)
        except sqlite3.OperationalError as error:
            db.close()
            raise JournalFull(f"cannot open the journal {self.path}: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            db.close()
            raise damaged(str(error)) from error
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found > FORMAT:
            raise BadState(
                f"{self.path} has format {found}, this program reads up to {FORMAT}: upgrade verse"
            )
        if not self.readonly:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA secure_delete=ON")  # forgotten means gone from the file
            if found == 0:
                db.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;")

    # ---- damage -----------------------------------------------------------------------------

    def _verify(self, acknowledged: int) -> None:
        """Notice what SQLite does not: a changed layout, a lost tail, a changed key."""
        verdict = self._one("PRAGMA integrity_check(1)")
        if verdict != ("ok",):
            raise damaged(str(verdict))
        if self._rows(LAYOUT) != _pristine_layout():
            raise damaged("its layout")
        last, newest = self._last_written(), self._one("SELECT max(seq) FROM entries")
        if acknowledged > last or (newest is not None and (newest[0] or 0) > last):
            raise damaged(f"it ends at entry {last}, but entry {acknowledged} was acknowledged")
        for key, seq, crc in self._rows("SELECT key, seq, crc FROM keys"):
            if not isinstance(key, bytes) or zlib.crc32(key, seq) != crc:
                raise damaged(f"the key of entry {seq}")

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return list(self._each(query, *values))

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        return next(iter(self._rows(query, *values)), None)

    def _each(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._db.execute(query, values)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise damaged(str(error)) from error

    def _last_written(self) -> int:
        """The newest entry ever written, also if it was dropped since."""
        row = self._one("SELECT seq FROM sqlite_sequence WHERE name='entries'")
        return int(row[0]) if row else 0

    # ---- writing ----------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The number of the newest entry, pending ones included."""
        return self._last_written() if self.readonly else self._next - 1

    def add(
        self,
        kind: str,
        arguments: dict[str, Any],
        z: bytes | None = None,
        *,
        key: str | None = None,
        images: Mapping[str, bytes] | None = None,
    ) -> int:
        """One more entry for the next ``flush``; returns its number."""
        seq, self._next = self._next, self._next + 1
        entry = Entry(seq, kind, arguments, z, "kept")
        self._pending_entries[seq] = entry
        self._pending.append(("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", as_row(entry)))
        if key is not None:
            short = short_key(key)
            self._pending_keys[short] = seq
            self._pending.append(
                ("INSERT INTO keys VALUES (?, ?, ?)", (short, seq, zlib.crc32(short, seq)))
            )
        for what, image in (images or {}).items():
            values = (seq, what, json.dumps(arguments["label"]), image)
            self._pending.append(
                ("INSERT INTO images VALUES (?1, ?2, ?3, ?4, image_crc(?1, ?3, ?4))", values)
            )
        if images and "thumbnail" in images:
            self._pending.append(_only_newest_thumbnails(arguments["label"]))
        return seq

    @property
    def pending(self) -> int:
        """Entries that wait for the next ``flush``."""
        return len(self._pending_entries)

    def relabel_images(self, label: Any, new: Any) -> None:
        """With the next ``flush``: images of one label get another, or go if it is None."""
        old = json.dumps(label)
        if new is None:
            self._pending.append(("DELETE FROM images WHERE label=?", (old,)))
        else:
            self._pending.append(
                (
                    "UPDATE images SET label=?1, crc=image_crc(seq, ?1, image) WHERE label=?2",
                    (json.dumps(new), old),
                )
            )
            self._pending.append(_only_newest_thumbnails(new))

    def refuse(self, seq: int) -> None:
        """With the next ``flush``: the learner refused this entry, replaying skips it."""
        self._pending += [self._fate(seq, "refused"), *_without_images(seq)]

    def flush(self) -> None:
        """Make everything pending durable by one disk flush; on failure it all stays pending."""
        if not self._pending:
            return
        self._write(self._pending)
        acknowledged = self._next - 1
        self.discard()
        self._next = acknowledged + 1
        self._mark.write(acknowledged)

    def discard(self) -> None:
        """Give up what is pending."""
        if self._pending_entries:
            self._next = min(self._pending_entries)
        self._pending = []
        self._pending_entries, self._pending_keys = {}, {}

    def _write(self, statements: Sequence[Statement]) -> None:
        """Several changes, all or none."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for statement, values in statements:
                self._db.execute(statement, values)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise JournalFull(
                    f"cannot write the journal ({error}): nothing was learned, everything before "
                    "is safe; free some disk space"
                ) from error
            raise damaged(str(error)) from error

    def _fate(self, seq: int, fate: str) -> Statement:
        before = self._pending_entries.get(seq) or self.entry(seq)
        entry = Entry(seq, before.kind, before.arguments, before.z, fate)
        if seq in self._pending_entries:
            self._pending_entries[seq] = entry
        return "UPDATE entries SET fate=?, checksum=? WHERE seq=?", (fate, as_row(entry)[-1], seq)

    def undo(self, seq: int) -> None:
        """Strike an entry out, with every checkpoint that contains it."""
        self.flush()
        self._write(
            [
                self._fate(seq, "undone"),
                *_without_images(seq),
                ("DELETE FROM checkpoints WHERE position >= ?", (seq,)),
            ]
        )

    def record_checkpoint(
        self,
        position: int,
        file: str,
        *,
        keep: Sequence[int],
        drop_through: int,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """A new checkpoint holds. Of the others only ``keep`` stay; old entries are dropped."""
        kept = ",".join(str(int(p)) for p in keep)
        self._write(
            [
                (f"DELETE FROM checkpoints WHERE position NOT IN ({kept})", ()),
                ("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (position, file)),
                ("DELETE FROM entries WHERE seq <= ?", (drop_through,)),
                ("DELETE FROM keys WHERE seq <= ?", (position - KEYS_KEPT,)),
                *(meta_row(name, value) for name, value in (meta or {}).items()),
            ]
        )

    def wipe_log(self) -> bool:
        """Fold the log into the database and cut it, so that no old page stays.

        False while a reader hinders.
        """
        (busy, _, _) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def set_meta(self, name: str, value: Any) -> None:
        self._write([meta_row(name, value)])

    # ---- reading ----------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Everything read inside is of one moment, whatever a writer does."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    def meta(self, name: str) -> Any:
        row = self._one("SELECT value, checksum FROM meta WHERE name=?", name)
        if row is None:
            return None
        if checksum(name, row[0]) != row[1]:
            raise damaged(f"its {name}")
        return json.loads(row[0])

    def since(self, position: int) -> Iterator[Entry]:
        """Every entry after a position, in order, each checked; a missing one is an error."""
        expected = position + 1
        for row in self._each("SELECT * FROM entries WHERE seq > ? ORDER BY seq", position):
            entry = checked(row)
            if entry.seq != expected:
                raise damaged(f"entry {expected} is missing")
            expected += 1
            yield entry
        if expected <= self._last_written():
            raise damaged(f"entry {expected} is missing")

    def entry(self, seq: int) -> Entry:
        row = self._one("SELECT * FROM entries WHERE seq=?", seq)
        if row is None:
            raise BadState(f"there is no entry {seq}")
        return checked(row)

    def reaches(self, position: int) -> bool:
        """Are all entries after this position still here?"""
        row = self._one("SELECT min(seq) FROM entries")
        first = row[0] if row else None
        return bool(position >= (self._last_written() if first is None else first - 1))

    def samples_after(self, position: int) -> int:
        """How many learned samples, not undone, come after a position."""
        query = "SELECT count(*) FROM entries WHERE seq > ? AND kind='learn' AND fate='kept'"
        return int(self._rows(query, position)[0][0])

    def latest_samples(self, n: int) -> list[int]:
        """Numbers of the latest learned samples that were not undone, oldest first."""
        query = "SELECT seq FROM entries WHERE kind='learn' AND fate='kept' ORDER BY seq DESC"
        return [seq for (seq,) in self._rows(f"{query} LIMIT ?", n)][::-1]

    def contains(self, kind: str) -> bool:
        return self._one("SELECT 1 FROM entries WHERE kind=?", kind) is not None

    def images(self, kind: str) -> Iterator[tuple[int, Any, bytes]]:
        """Kept images in order of teaching: (seq, label, encoded image)."""
        query = "SELECT seq, label, image, crc FROM images WHERE kind=? ORDER BY seq"
        for seq, label, image, crc in self._each(query, kind):
            if not isinstance(image, bytes) or image_crc(seq, label, image) != crc:
                raise damaged(f"the {kind} of entry {seq}")
            yield seq, json.loads(label), image

    def seq_of(self, key: str) -> int | None:
        """The entry that was written with this idempotency key."""
        short = short_key(key)
        if short in self._pending_keys:
            return self._pending_keys[short]
        row = self._one("SELECT seq FROM keys WHERE key=?", short)
        return int(row[0]) if row else None

    def checkpoints(self) -> list[tuple[int, str]]:
        """(position, file) of every valid checkpoint, newest first."""
        rows = self._rows("SELECT position, file FROM checkpoints ORDER BY position DESC")
        return [(int(position), str(file)) for position, file in rows]

    def version(self) -> int:
        """A number that changes when another process has written."""
        return int(self._rows("PRAGMA data_version")[0][0])

    def copy_to(self, target: Path) -> None:
        """A consistent copy, also while the original is being written."""
        copy = sqlite3.connect(target)
        try:
            self._db.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file that needs no log beside it
        finally:
            copy.close()

    def close(self) -> None:
        """Release the files; what is pending is given up."""
        self._db.close()
        self._mark.close()


@functools.cache
def _pristine_layout() -> list[tuple[Any, ...]]:
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(SCHEMA)
        return list(db.execute(LAYOUT))
    finally:
        db.close()


def _without_images(seq: int) -> list[Statement]:
    return [("DELETE FROM images WHERE seq=?", (seq,))]


def _only_newest_thumbnails(label: Any) -> Statement:
    return (
        "DELETE FROM images WHERE kind='thumbnail' AND label=?1 AND seq NOT IN (SELECT seq FROM"
        " images WHERE kind='thumbnail' AND label=?1 ORDER BY seq DESC LIMIT ?2)",
        (json.dumps(label), THUMBNAILS),
    )
