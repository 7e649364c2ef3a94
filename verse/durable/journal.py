"""The journal of a durable classifier: what was done, in order, each entry safe before it counts.

SQLite in write-ahead mode holds the entries: a commit is on disk when it returns, several entries
in one commit share one flush, and a log that was cut in the middle of a commit counts as if that
commit had never begun. What SQLite does not notice is noticed here: every row carries a checksum,
entries have no gaps, and a high-water mark beside the database tells when acknowledged entries are
missing (SQLite takes a damaged log for a shorter one).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from verse.durable import image_rows
from verse.durable.database import Database
from verse.durable.errors import damaged
from verse.durable.mark import Mark
from verse.durable.rows import Entry, Statement, as_row, checked, checksum, meta_row, short_key
from verse.types import BadState

KEYS_KEPT = 1_000_000  # idempotency keys outlive their entries, but not for ever


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
            self.database = Database(path, readonly=readonly)
        except BaseException:
            self._mark.close()
            raise
        try:
            self._verify(acknowledged)
            self._next = self._last_written() + 1
        except BaseException:
            self.close()
            raise

    def _verify(self, acknowledged: int) -> None:
        """Notice what SQLite does not: a changed layout, a lost tail, a changed key."""
        self.database.verify()
        last, newest = self._last_written(), self.database.one("SELECT max(seq) FROM entries")
        if acknowledged > last or (newest is not None and (newest[0] or 0) > last):
            raise damaged(f"it ends at entry {last}, but entry {acknowledged} was acknowledged")
        for key, seq, crc in self.database.rows("SELECT key, seq, crc FROM keys"):
            if not isinstance(key, bytes) or zlib.crc32(key, seq) != crc:
                raise damaged(f"the key of entry {seq}")

    def _last_written(self) -> int:
        """The newest entry ever written, also if it was dropped since."""
        row = self.database.one("SELECT seq FROM sqlite_sequence WHERE name='entries'")
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
        if images:
            self._pending += image_rows.keep(seq, arguments["label"], images)
        return seq

    @property
    def pending(self) -> int:
        """Entries that wait for the next ``flush``."""
        return len(self._pending_entries)

    def relabel_images(self, label: Any, new: Any) -> None:
        """With the next ``flush``: images of one label get another, or go if it is None."""
        self._pending += image_rows.relabel(label, new)

    def refuse(self, seq: int) -> None:
        """With the next ``flush``: the learner refused this entry, replaying skips it."""
        self._pending += [self._fate(seq, "refused"), image_rows.drop(seq)]

    def flush(self) -> None:
        """Make everything pending durable by one disk flush; on failure it all stays pending."""
        if not self._pending:
            return
        self.database.write(self._pending)
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

    def _fate(self, seq: int, fate: str) -> Statement:
        before = self._pending_entries.get(seq) or self.entry(seq)
        entry = Entry(seq, before.kind, before.arguments, before.z, fate)
        if seq in self._pending_entries:
            self._pending_entries[seq] = entry
        return "UPDATE entries SET fate=?, checksum=? WHERE seq=?", (fate, as_row(entry)[-1], seq)

    def undo(self, seq: int) -> None:
        """Strike an entry out, with every checkpoint that contains it."""
        self.flush()
        self.database.write(
            [
                self._fate(seq, "undone"),
                image_rows.drop(seq),
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
        self.database.write(
            [
                (f"DELETE FROM checkpoints WHERE position NOT IN ({kept})", ()),
                ("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (position, file)),
                ("DELETE FROM entries WHERE seq <= ?", (drop_through,)),
                ("DELETE FROM keys WHERE seq <= ?", (position - KEYS_KEPT,)),
                *(meta_row(name, value) for name, value in (meta or {}).items()),
            ]
        )

    def set_meta(self, name: str, value: Any) -> None:
        self.database.write([meta_row(name, value)])

    # ---- reading ----------------------------------------------------------------------------

    def reading(self) -> AbstractContextManager[None]:
        """Everything read inside is of one moment, whatever a writer does."""
        return self.database.reading()

    def meta(self, name: str) -> Any:
        row = self.database.one("SELECT value, checksum FROM meta WHERE name=?", name)
        if row is None:
            return None
        if checksum(name, row[0]) != row[1]:
            raise damaged(f"its {name}")
        return json.loads(row[0])

    def since(self, position: int) -> Iterator[Entry]:
        """Every entry after a position, in order, each checked; a missing one is an error."""
        expected = position + 1
        query = "SELECT * FROM entries WHERE seq > ? ORDER BY seq"
        for row in self.database.each(query, position):
            entry = checked(row)
            if entry.seq != expected:
                raise damaged(f"entry {expected} is missing")
            expected += 1
            yield entry
        if expected <= self._last_written():
            raise damaged(f"entry {expected} is missing")

    def entry(self, seq: int) -> Entry:
        row = self.database.one("SELECT * FROM entries WHERE seq=?", seq)
        if row is None:
            raise BadState(f"there is no entry {seq}")
        return checked(row)

    def reaches(self, position: int) -> bool:
        """Are all entries after this position still here?"""
        row = self.database.one("SELECT min(seq) FROM entries")
        first = row[0] if row else None
        return bool(position >= (self._last_written() if first is None else first - 1))

    def samples_after(self, position: int) -> int:
        """How many learned samples, not undone, come after a position."""
        query = "SELECT count(*) FROM entries WHERE seq > ? AND kind='learn' AND fate='kept'"
        return int(self.database.rows(query, position)[0][0])

    def latest_samples(self, n: int) -> list[int]:
        """Numbers of the latest learned samples that were not undone, oldest first."""
        query = "SELECT seq FROM entries WHERE kind='learn' AND fate='kept' ORDER BY seq DESC"
        return [seq for (seq,) in self.database.rows(f"{query} LIMIT ?", n)][::-1]

    def contains(self, kind: str) -> bool:
        return self.database.one("SELECT 1 FROM entries WHERE kind=?", kind) is not None

    def images(self, kind: str) -> Iterator[tuple[int, Any, bytes]]:
        """Kept images in order of teaching: (seq, label, encoded image)."""
        return image_rows.checked_images(kind, self.database.each(image_rows.READ, kind))

    def seq_of(self, key: str) -> int | None:
        """The entry that was written with this idempotency key."""
        short = short_key(key)
        if short in self._pending_keys:
            return self._pending_keys[short]
        row = self.database.one("SELECT seq FROM keys WHERE key=?", short)
        return int(row[0]) if row else None

    def checkpoints(self) -> list[tuple[int, str]]:
        """(position, file) of every valid checkpoint, newest first."""
        rows = self.database.rows("SELECT position, file FROM checkpoints ORDER BY position DESC")
        return [(int(position), str(file)) for position, file in rows]

    def close(self) -> None:
        """Release the files; what is pending is given up."""
        self.database.close()
        self._mark.close()
