"""The journal: whole entries or none, and damage is never taken for content."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from verse.durable import THUMBNAILS, JournalFull, backup, restore
from verse.durable import archive as archive_module
from verse.durable import keys as module
from verse.durable.journal import Journal
from verse.types import BadSetting, BadState, VerseError

Z = bytes(range(64))


def begin(folder: Path, *, page: int = 512) -> Journal:
    """A journal of small pages, so that a record has few bytes to cut it at."""
    folder.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(folder / "journal.sqlite")
    db.execute(f"PRAGMA page_size={page}")
    db.execute("VACUUM")
    db.close()
    return Journal(folder / "journal.sqlite")


def learn(journal: Journal, n: int) -> None:
    for _ in range(n):
        seq = journal.last + 1
        journal.add(
            "learn",
            {"label": f"class {seq % 3}"},
            Z + bytes([seq]),
            key=f"key {seq}",
            images={"thumbnail": b"JPEG" * seq},
        )
        journal.flush()


def content(folder: Path) -> object:
    journal = Journal(folder / "journal.sqlite")
    try:
        keys = {k: journal.key(f"key {k}") for k in range(20)}
        return (
            list(journal.since(0)),
            journal.last,
            journal.meta("options"),
            list(journal.images("thumbnail")),
            keys,
        )
    finally:
        journal.close()


def copy(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*-shm"))
    return target


def test_entries_keys_images_and_fates(tmp_path) -> None:
    journal = begin(tmp_path)
    learn(journal, 4)
    journal.refuse(2)
    journal.flush()
    journal.undo([3])
    assert [(e.seq, e.fate) for e in journal.since(1)] == [
        (2, "refused"),
        (3, "undone"),
        (4, "kept"),
        (5, "kept"),
    ]
    assert journal.entry(4).arguments == {"label": "class 1"} and journal.entry(4).z == Z + b"\4"
    assert [seq for seq, _, _ in journal.images("thumbnail")] == [1, 4]
    assert journal.key("key 3").seq == 3 and journal.key("key 9") is None
    assert journal.latest_samples(5) == [1, 4] and journal.samples_after(1) == 1
    journal.relabel("class 1", "other")
    journal.flush()
    assert {label for _, label, _ in journal.images("thumbnail")} == {"other"}
    journal.relabel("other", None)
    journal.flush()
    assert not list(journal.images("thumbnail"))
    journal.close()


def test_thumbnails_are_bounded_for_each_class(tmp_path) -> None:
    journal = begin(tmp_path)
    learn(journal, 60)
    by_class: dict[str, list[int]] = {}
    for seq, label, _ in journal.images("thumbnail"):
        by_class.setdefault(label, []).append(seq)
    assert {len(seqs) for seqs in by_class.values()} == {THUMBNAILS}
    assert max(by_class["class 0"]) == 60
    journal.close()


def test_pending_is_flushed_together_or_given_up(tmp_path) -> None:
    journal = begin(tmp_path)
    assert [journal.add("learn", {"label": "a"}, Z, key=str(i)) for i in range(3)] == [1, 2, 3]
    assert journal.key("1").seq == 2 and journal.pending == 3 and not list(journal.since(0))
    journal.discard()
    assert journal.key("1") is None and journal.last == 0
    journal.add("learn", {"label": "a"}, Z)
    journal.refuse(1)
    journal.flush()
    assert [e.fate for e in journal.since(0)] == ["refused"]
    journal.close()


def test_old_checkpoints_and_entries_are_dropped(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "KEYS_KEPT", 5)
    journal = begin(tmp_path)
    learn(journal, 9)
    three, nine = (f"checkpoint-{n:012d}.verse" for n in (3, 9))
    journal.record_checkpoint(3, three, keep=[], drop_through=0)
    assert journal.reaches(0)
    journal.record_checkpoint(9, nine, keep=[3], drop_through=3)
    assert journal.checkpoints() == [(9, nine), (3, three)]
    assert [e.seq for e in journal.since(3)] == [4, 5, 6, 7, 8, 9]
    assert not journal.reaches(0) and journal.reaches(3)
    assert journal.key("key 4") is None and journal.key("key 5").seq == 5
    with pytest.raises(BadState, match="entry 1 is missing"):
        list(journal.since(0))
    journal.record_checkpoint(9, nine, keep=[], drop_through=9)
    assert journal.last == 9 and not list(journal.since(9))
    journal.close()
    journal = Journal(tmp_path / "journal.sqlite")
    assert journal.add("learn", {"label": "a"}, Z) == 10
    journal.close()


# ---- damage -----------------------------------------------------------------------------------


def test_a_record_cut_at_any_byte_never_happened(tmp_path) -> None:
    """The process dies while it writes its last record: the log ends anywhere inside it."""
    live = tmp_path / "live"
    journal = begin(live)
    learn(journal, 5)
    before = copy(live, tmp_path / "before")
    learn(journal, 1)
    log = (live / "journal.sqlite-wal").read_bytes()
    journal.close()
    start = (before / "journal.sqlite-wal").stat().st_size
    assert start < len(log)
    expected = content(copy(before, tmp_path / "now"))
    assert len(log) - start > 1000
    now = copy(before, tmp_path / "now")
    for cut in range(start, len(log)):
        (now / "journal.sqlite-wal").write_bytes(log[:cut])
        (now / "journal.sqlite-shm").unlink(missing_ok=True)
        journal = Journal(now / "journal.sqlite", readonly=True)
        assert journal.last == 5
        journal.close()
    for cut in range(start, len(log), 400):  # and the writer goes on from there
        now = copy(before, tmp_path / "now")
        (now / "journal.sqlite-wal").write_bytes(log[:cut])
        assert content(now) == expected


def test_a_lost_tail_of_the_log_is_noticed(tmp_path) -> None:
    """SQLite takes a shorter log for the whole one; the mark knows better."""
    journal = begin(tmp_path / "live")
    learn(journal, 6)
    now = copy(tmp_path / "live", tmp_path / "now")
    journal.close()
    log = (now / "journal.sqlite-wal").read_bytes()
    (now / "journal.sqlite-wal").write_bytes(log[:-700])
    with pytest.raises(BadState, match=r"ends at entry \d, but entry 6 was acknowledged"):
        Journal(now / "journal.sqlite")


@pytest.mark.parametrize("which", ["journal.sqlite-wal", "journal.sqlite", "acknowledged"])
def test_flipped_bits_are_noticed_or_harmless(tmp_path, which) -> None:
    live = tmp_path / "live"
    journal = begin(live)
    journal.set_meta("options", {"learner": "verse"})
    learn(journal, 6)
    if which == "journal.sqlite":
        journal.database.wipe_log()
    source = copy(live, tmp_path / "source")
    journal.close()
    expected = content(copy(source, tmp_path / "now"))
    raw = (source / which).read_bytes()
    rng = np.random.default_rng(0)
    places = rng.permutation(len(raw) * 8)[:200]
    noticed = 0
    for place in places:
        damaged = bytearray(raw)
        damaged[place // 8] ^= 1 << (place % 8)
        now = copy(source, tmp_path / "now")
        (now / which).write_bytes(damaged)
        try:
            found = content(now)
        except VerseError:
            noticed += 1
        else:
            assert found == expected, f"bit {place} of {which} changed the content unnoticed"
    assert noticed > len(places) // 4


def test_a_newer_format_and_a_foreign_file_are_refused(tmp_path) -> None:
    journal = begin(tmp_path)
    journal.database.connection.execute("PRAGMA user_version=99")
    journal.close()
    with pytest.raises(BadState, match="format 99"):
        Journal(tmp_path / "journal.sqlite")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "journal.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(BadState, match="damaged"):
        Journal(tmp_path / "x" / "journal.sqlite")


# ---- backups ----------------------------------------------------------------------------------


def test_a_backup_holds_everything_and_notices_damage(tmp_path) -> None:
    live = tmp_path / "live"
    journal = begin(live)
    learn(journal, 5)
    (live / "checkpoint-000000000003.verse").write_bytes(b"checkpoint" * 50)
    journal.record_checkpoint(3, "checkpoint-000000000003.verse", keep=[], drop_through=0)
    file = tmp_path / "backup.zip"
    manifest = backup(live, file)  # while it is open for writing
    learn(journal, 1)
    journal.close()
    assert set(manifest["files"]) == {"journal.sqlite", "checkpoint-000000000003.verse"}
    restore(file, tmp_path / "again")
    assert content(tmp_path / "again")[1] == 5
    assert (tmp_path / "again" / "checkpoint-000000000003.verse").read_bytes() == b"checkpoint" * 50
    with pytest.raises(BadSetting, match="already exists"):
        restore(file, tmp_path / "again")
    raw = file.read_bytes()
    for place in (3, 200, len(raw) // 2, len(raw) - 10):
        file.write_bytes(raw[:place] + bytes([raw[place] ^ 64]) + raw[place + 1 :])
        with pytest.raises(BadState):
            restore(file, tmp_path / "damaged")
        assert not (tmp_path / "damaged").exists()
    file.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(BadState):
        restore(file, tmp_path / "damaged")
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    with pytest.raises(BadState, match="no classifier"):
        backup(tmp_path / "nowhere", tmp_path / "b.zip")
    with pytest.raises(BadState, match="no file"):
        restore(tmp_path / "no.zip", tmp_path / "damaged")


def test_an_archive_cannot_write_elsewhere(tmp_path) -> None:
    import json
    import zipfile

    file = tmp_path / "evil.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../evil", b"x")
        archive.writestr("manifest.json", json.dumps({"format": 1, "files": {"../evil": "0"}}))
    with pytest.raises(BadState, match="no part of a classifier"):
        restore(file, tmp_path / "deep" / "down")
    assert not (tmp_path / "deep" / "evil").exists()


def test_bombs_are_refused_before_anything_is_written(tmp_path, monkeypatch) -> None:
    import json
    import zipfile

    def archive(members: dict[str, bytes], **options) -> Path:
        file = tmp_path / "bomb.zip"
        with zipfile.ZipFile(file, "w", **options) as made:
            for name, content in members.items():
                made.writestr(name, content)
        return file

    files = {"journal.sqlite": "0"}
    manifest = json.dumps({"format": 1, "files": files}).encode()
    zeros, deflated = bytes(3_000_000), {"compression": zipfile.ZIP_DEFLATED}
    monkeypatch.setattr(archive_module.shutil, "copyfileobj", None)  # nothing is unpacked
    monkeypatch.setattr(archive_module, "MANIFEST_BYTES", 1000)
    for members, options, told in (
        ({"manifest.json": manifest, "journal.sqlite": zeros}, deflated, "compressed"),
        ({"manifest.json": b" " * 2000 + manifest, "journal.sqlite": b""}, {}, "too large"),
        ({"manifest.json": b"[" * 900, "journal.sqlite": b""}, {}, "damaged"),
        ({"manifest.json": manifest}, {}, "does not hold"),
        ({"manifest.json": manifest, "journal.sqlite": b"", "more": b""}, {}, "does not hold"),
        ({"manifest.json": b'{"format": 1, "files": {}}'}, {}, "no journal"),
        ({"manifest.json": b'{"format": "1", "files": []}'}, {}, "damaged"),
    ):
        with pytest.raises(BadState, match=told):
            restore(archive(members, **options), tmp_path / "out")
        assert not (tmp_path / "out").exists()
    file = archive({"manifest.json": manifest, "journal.sqlite": b"x"})
    raw = file.read_bytes()
    size = raw.rindex(b"PK\1\2") + 24  # what the directory says of the last member's size
    file.write_bytes(raw[:size] + (2**31).to_bytes(4, "little") + raw[size + 4 :])
    with pytest.raises(BadState, match="larger than itself"):
        restore(file, tmp_path / "out")


def test_full_disk_is_told(tmp_path, monkeypatch) -> None:
    journal = begin(tmp_path)
    learn(journal, 1)
    journal.database.connection.execute("PRAGMA max_page_count=20")
    with pytest.raises(JournalFull, match="full"):
        learn(journal, 40)
    kept = journal.last - journal.pending
    assert [e.seq for e in journal.since(0)] == list(range(1, kept + 1))
    journal.discard()
    journal.database.connection.execute("PRAGMA max_page_count=100000")
    learn(journal, 3)
    assert journal.last == kept + 3
    journal.close()
