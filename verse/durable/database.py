"""The two files of a journal.

The SQLite file: safe when a write returns, whole or untouched, looked over when it is opened.
Also the high-water mark, which shows when the end of that file is missing.
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from verse.durable.entry import Statement, checksum, strike_entry
from verse.durable.errors import JournalFull, damage_error
from verse.durable.journal_images import image_crc
from verse.durable.keys import insert, key_crc
from verse.types import BadState

FORMAT = 2
BEFORE = """
CREATE TABLE keys (
    key BLOB PRIMARY KEY, seq INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_by_seq ON keys (seq);
"""
KEYS = """
CREATE TABLE keys (
    key BLOB PRIMARY KEY, seq INTEGER NOT NULL, content BLOB, label TEXT, fate TEXT NOT NULL,
    crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_by_seq ON keys (seq);
"""
SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB);
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, arguments TEXT NOT NULL,
    z BLOB, fate TEXT NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE checkpoints (position INTEGER PRIMARY KEY, file TEXT NOT NULL);
CREATE TABLE images (
    seq INTEGER NOT NULL, kind TEXT NOT NULL, label TEXT NOT NULL, image BLOB NOT NULL,
    crc INTEGER NOT NULL, PRIMARY KEY (seq, kind));
CREATE INDEX images_by_label ON images (kind, label, seq);
"""
BUSY_SECONDS = 10  # how long a write waits for another one
LAYOUT = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"


class Database:
    """One connection, of one thread at a time.

    >>> import tempfile
    >>> database = Database(Path(tempfile.mkdtemp()) / "journal.sqlite")
    >>> database.write([("INSERT INTO checkpoints VALUES (?, ?)", (7, "a file"))])
    >>> database.rows("SELECT * FROM checkpoints")
    [(7, 'a file')]
    >>> database.close()
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path, self.readonly = path, readonly
        self.connection = self._connect()

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
                timeout=BUSY_SECONDS,
            )
        except sqlite3.Error as error:
            raise BadState(f"cannot open the journal {self.path}: {error}") from error
        try:
            db.create_function("image_crc", 3, image_crc, deterministic=True)
            db.create_function("key_crc", 5, key_crc, deterministic=True)
            self._prepare(db)
        except sqlite3.OperationalError as error:
            db.close()
            raise JournalFull(f"cannot open the journal {self.path}: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            db.close()
            raise damage_error(str(error)) from error
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
                db.executescript(f"BEGIN; {SCHEMA}{KEYS} PRAGMA user_version={FORMAT}; COMMIT;")
                found = FORMAT
        self.format = found

    def verify(self) -> None:
        """Notice broken pages and a changed layout."""
        verdict = self.one("PRAGMA integrity_check(1)")
        if verdict != ("ok",):
            raise damage_error(str(verdict))
        if self.rows(LAYOUT) != _pristine_layout(self.format):
            raise damage_error("its layout")

    def upgrade(self) -> None:
        """From the format of earlier versions, all or nothing: their keys knew no fate."""
        if self.readonly or self.format == FORMAT:
            return
        old = self.rows(
            "SELECT key, keys.seq, arguments, fate FROM keys LEFT JOIN entries USING (seq)"
        )
        moved = [
            insert(key, seq, None, json.loads(arguments or "{}").get("label"), fate or "kept")
            for key, seq, arguments, fate in old
        ]
        tables = [(statement, ()) for statement in ("DROP TABLE keys", *KEYS.split(";")[:-1])]
        gone = self.rows("SELECT seq, fate FROM entries WHERE fate != 'kept'")
        moved += [strike_entry(seq, fate) for seq, fate in gone]
        self.write([*tables, *moved, (f"PRAGMA user_version={FORMAT}", ())])
        self.format = FORMAT

    # ---- writing ----------------------------------------------------------------------------

    def write(self, statements: Sequence[Statement]) -> None:
        """Several changes, all or none."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            for statement, values in statements:
                self.connection.execute(statement, values)
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise JournalFull(
                    f"cannot write the journal ({error}): nothing was learned, everything before "
                    "is safe; free some disk space"
                ) from error
            raise damage_error(str(error)) from error

    def wipe_log(self) -> bool:
        """Fold the log into the database and cut it, so that no old page stays.

        False while a reader hinders; it is not waited for.
        """
        self.connection.execute("PRAGMA busy_timeout=0")
        try:
            (busy, _, _) = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            raise JournalFull(
                f"cannot write the journal ({error}): free some disk space"
            ) from error
        finally:
            self.connection.execute(f"PRAGMA busy_timeout={1000 * BUSY_SECONDS}")
        return not busy

    # ---- reading ----------------------------------------------------------------------------

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Everything read inside is of one moment, whatever a writer does."""
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("COMMIT")

    def each(self, query: str, *values: object) -> Iterator[tuple[Any, ...]]:
        try:
            # not "yield from", which closes the cursor of rows that were not all read: too late,
            # if the database is closed by then
            for row in self.connection.execute(query, values):  # noqa: UP028
                yield row
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise damage_error(str(error)) from error

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return list(self.each(query, *values))

    def one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        return next(iter(self.rows(query, *values)), None)

    def version(self) -> int:
        """A number that changes when another process has written."""
        return int(self.rows("PRAGMA data_version")[0][0])

    def copy_to(self, target: Path) -> None:
        """A consistent copy, also while the original is being written."""
        copy = sqlite3.connect(target)
        try:
            self.connection.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file that needs no log beside it
        finally:
            copy.close()

    def close(self) -> None:
        self.connection.close()


class HighWaterMark:
    """The newest acknowledged entry, in a separate file: it survives a killed process without a
    flush, and after a power failure it may lag behind, never lead."""

    def __init__(self, path: Path, readonly: bool) -> None:
        self.path = path
        self._file: int | None = None
        if not readonly or path.exists():
            flags = os.O_RDONLY if readonly else os.O_RDWR | os.O_CREAT
            self._file = os.open(path, flags, 0o644)

    def read(self) -> int:
        raw = os.pread(self._file, 16, 0) if self._file is not None else b""
        if len(raw) < 16:
            return 0
        (seq,) = struct.unpack("<Q", raw[:8])
        if checksum("acknowledged", seq)[:8] != raw[8:]:
            raise BadState(
                f"{self.path} is damaged, so that missing entries would go unnoticed: "
                "restore a backup, or delete that file to go on regardless"
            )
        return int(seq)

    def write(self, seq: int) -> None:
        assert self._file is not None
        with suppress(OSError):  # a full disk: the mark lags behind, which is safe
            os.pwrite(self._file, struct.pack("<Q", seq) + checksum("acknowledged", seq)[:8], 0)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@functools.cache
def _pristine_layout(version: int) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(SCHEMA + (BEFORE if version == 1 else KEYS))
        return list(db.execute(LAYOUT))
    finally:
        db.close()
