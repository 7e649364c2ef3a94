"""The journal of a durable classifier: what was done, in order, each entry safe before it counts.

SQLite in write-ahead mode holds the entries: a commit is on disk when it returns, several entries
in one commit share one flush, and a log that was cut in the middle of a commit counts as if that
commit had never begun. What SQLite does not notice is noticed here: every row carries a checksum,
entries have no gaps, and a high-water mark beside the database tells when acknowledged entries are
missing (SQLite takes a damaged log for a shorter one).
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from verse.durable import journal_images, keys
from verse.durable.database import Database, HighWaterMark
from verse.durable.entry import (
    JournalEntry,
    Statement,
    as_row,
    check_entry,
    checksum,
    meta_row,
    strike_entry,
)
from verse.durable.errors import damage_error
from verse.durable.keys import IdempotencyKey, short_key
from verse.types import BadState

CHECKPOINT = re.compile(r"checkpoint-\d{12}\.verse")  # what their files are called
WIPE = "wipe"  # set while files still hold what was forgotten


class Journal:
    """The entries, idempotency keys, images and checkpoint list of one directory.

    ``add`` collects entries, ``flush`` makes them durable together or raises ``JournalFull``.

    Parameters
    ----------
    path
        The SQLite file.
    readonly
        Only look.

    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()) / "journal.sqlite")
    >>> journal.add("learn", {"label": "mug"}, b"z", key="request 1")
    1
    >>> journal.flush()
    >>> [entry.kind for entry in journal.since(0)], journal.key("request 1").seq
    (['learn'], 1)
    >>> journal.close()
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        self.path, self.readonly = path, readonly
        self._pending: list[Statement] = []
        self._pending_entries: dict[int, JournalEntry] = {}
        self._pending_keys: dict[bytes, IdempotencyKey] = {}
        self._mark = HighWaterMark(path.with_name("acknowledged"), readonly)
        try:
            acknowledged = self._mark.read()  # before the entries: a writer may add meanwhile
            self.database = Database(path, readonly=readonly)
        except BaseException:
            self._mark.close()
            raise
        try:
            self._verify(acknowledged)
            self.database.upgrade()
            self._next = self._read_last_seq() + 1
        except BaseException:
            self.close()
            raise

    def _verify(self, acknowledged: int) -> None:
        """Notice what SQLite does not: a changed layout, a lost tail, a changed key."""
        self.database.verify()
        last, newest = self._read_last_seq(), self.database.one("SELECT max(seq) FROM entries")
        if acknowledged > last or (newest is not None and (newest[0] or 0) > last):
            raise damage_error(
                f"it ends at entry {last}, but entry {acknowledged} was acknowledged"
            )
        for key, seq, *more, crc in self.database.each("SELECT * FROM keys"):
            expected = keys.key_crc(key, seq, *more) if more else zlib.crc32(key, seq)
            if expected != crc:
                raise damage_error(f"the key of entry {seq}")

    def _read_last_seq(self) -> int:
        """The newest entry ever written, also if it was dropped since."""
        row = self.database.one("SELECT seq FROM sqlite_sequence WHERE name='entries'")
        return int(row[0]) if row else 0

    # ---- writing ----------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The number of the newest entry, pending ones included."""
        return self._read_last_seq() if self.readonly else self._next - 1

    def add(
        self,
        kind: str,
        arguments: dict[str, Any],
        z: bytes | None = None,
        *,
        key: str | None = None,
        content: bytes | None = None,
        images: Mapping[str, bytes] | None = None,
    ) -> int:
        """One more entry for the next ``flush``; returns its number. ``content`` is the digest
        that the key is bound to."""
        seq, self._next = self._next, self._next + 1
        entry = JournalEntry(seq, kind, arguments, z, "kept")
        self._pending_entries[seq] = entry
        self._pending.append(("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", as_row(entry)))
        if key is not None:
            short = short_key(key)
            self._pending_keys[short] = IdempotencyKey(seq, content, "kept")
            self._pending.append(keys.insert(short, seq, content, arguments.get("label"), "kept"))
        if images:
            self._pending += journal_images.keep(seq, arguments["label"], images)
        return seq

    @property
    def pending(self) -> int:
        """Entries that wait for the next ``flush``."""
        return len(self._pending_entries)

    def relabel(self, label: Any, new: Any) -> None:
        """With the next ``flush``: images and keys of one label get another. If it is None, the
        images go, the keys are those of forgotten samples, and the files must be wiped."""
        self._pending += [*journal_images.relabel_images(label, new), keys.relabel_keys(label, new)]
        if new is None:
            self._pending.append(meta_row(WIPE, True))

    def refuse(self, seq: int) -> None:
        """With the next ``flush``: the learner refused this entry, replaying skips it."""
        for key, known in self._pending_keys.items():
            if known.seq == seq:
                self._pending_keys[key] = IdempotencyKey(seq, known.content, "refused")
        self._pending += self._strike([seq], "refused")

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

    def _strike(self, seqs: Sequence[int], fate: str) -> Iterator[Statement]:
        for seq in seqs:
            yield strike_entry(seq, fate)
            yield journal_images.drop(seq)
        yield from keys.set_fate(seqs, fate)

    def undo(self, seqs: Sequence[int]) -> None:
        """Strike samples out, with every checkpoint that contains one of them.

        This is a separate entry: if the end of the log is lost, its absence is noticed.
        """
        self._take_back("undo", seqs, "undone")

    def forget(self, seqs: Sequence[int], void: Sequence[int], refused: Sequence[int]) -> None:
        """The same for good: the files must be wiped. Without these samples the ``void`` entries
        mean nothing, and the learner would have ``refused`` some."""
        self._take_back("strike", seqs, "forgotten", void, refused)

    def _take_back(
        self,
        kind: str,
        seqs: Sequence[int],
        fate: str,
        void: Sequence[int] = (),
        refused: Sequence[int] = (),
    ) -> None:
        self.flush()
        try:
            self.add(kind, {"seqs": list(seqs)})
            self._pending += self._strike(seqs, fate)
            self._pending += [strike_entry(seq, fate) for seq in void]
            self._pending += self._strike(refused, "refused")
            self._pending.append(("DELETE FROM checkpoints WHERE position >= ?", (min(seqs),)))
            if fate == "forgotten":
                self._pending.append(meta_row(WIPE, True))
            self.flush()
        except BaseException:
            self.discard()
            raise

    @property
    def wipe_due(self) -> bool:
        """Do files still hold what was forgotten?"""
        return self.meta(WIPE) is not None

    def clear_wipe(self) -> None:
        """They do no more."""
        self.database.write([("DELETE FROM meta WHERE name=?", (WIPE,))])

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
                keys.prune(position),
                *(meta_row(name, value) for name, value in (meta or {}).items()),
            ]
        )

    def set_meta(self, name: str, value: Any) -> None:
        self.database.write([meta_row(name, value)])

    # ---- reading ----------------------------------------------------------------------------

    def read_transaction(self) -> AbstractContextManager[None]:
        """Everything read inside is of one moment, whatever a writer does."""
        return self.database.read_transaction()

    def meta(self, name: str) -> Any:
        row = self.database.one("SELECT value, checksum FROM meta WHERE name=?", name)
        if row is None:
            return None
        if checksum(name, row[0]) != row[1]:
            raise damage_error(f"its {name}")
        return json.loads(row[0])

    def since(self, position: int) -> Iterator[JournalEntry]:
        """Every entry after a position, in order, each checked; a missing one is an error."""
        expected = position + 1
        query = "SELECT * FROM entries WHERE seq > ? ORDER BY seq"
        for row in self.database.each(query, position):
            entry = check_entry(row)
            if entry.seq != expected:
                raise damage_error(f"entry {expected} is missing")
            expected += 1
            yield entry
        if expected <= self._read_last_seq():
            raise damage_error(f"entry {expected} is missing")

    def entry(self, seq: int) -> JournalEntry:
        row = self.database.one("SELECT * FROM entries WHERE seq=?", seq)
        if row is None:
            raise BadState(f"there is no entry {seq}")
        return check_entry(row)

    def reaches(self, position: int) -> bool:
        """Are all entries after this position still here?"""
        row = self.database.one("SELECT min(seq) FROM entries")
        first = row[0] if row else None
        return bool(position >= (self._read_last_seq() if first is None else first - 1))

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
        return journal_images.check_images(kind, self.database.each(journal_images.READ, kind))

    def key(self, key: str) -> IdempotencyKey | None:
        """What is known of an idempotency key."""
        short = short_key(key)
        if short in self._pending_keys:
            return self._pending_keys[short]
        known = "NULL, 'kept'" if self.database.format == 1 else "content, fate"
        row = self.database.one(f"SELECT seq, {known} FROM keys WHERE key=?", short)
        return IdempotencyKey(*row) if row else None

    def checkpoints(self) -> list[tuple[int, str]]:
        """(position, file) of every valid checkpoint, newest first."""
        rows = self.database.rows("SELECT position, file FROM checkpoints ORDER BY position DESC")
        for _, file in rows:
            if not CHECKPOINT.fullmatch(str(file)):  # or it could name any file of the machine
                raise damage_error(f"a checkpoint called {file!r}")
        return [(int(position), str(file)) for position, file in rows]

    def close(self) -> None:
        """Release the files; what is pending is given up."""
        self.database.close()
        self._mark.close()
