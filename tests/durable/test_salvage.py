"""A lost journal: sound checkpoints are never deleted, and are a way to go on."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.durable.taught import clean, opened, same, stream, teach
from verse.durable import JournalLost, salvage
from verse.durable.database import KEYS, SCHEMA
from verse.types import BadSetting, BadState

SAMPLES = stream(30)


def missing(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def another(path: Path) -> None:
    path.unlink()
    db = sqlite3.connect(path)
    db.executescript(f"{SCHEMA}{KEYS} PRAGMA user_version=2;")
    db.close()


@pytest.mark.parametrize("lose", [missing, empty, another])
@pytest.mark.parametrize("mark", ["kept", "lost"])
def test_a_lost_journal_is_told_and_salvaged(tmp_path, lose, mark) -> None:
    teach(tmp_path, SAMPLES)
    with pytest.raises(BadSetting, match="is sound"):
        salvage(tmp_path)
    checkpoints = {f.name: f.read_bytes() for f in tmp_path.glob("checkpoint-*")}
    lose(tmp_path / "journal.sqlite")
    if mark == "lost":
        (tmp_path / "acknowledged").unlink()
    if lose is missing:
        with pytest.raises(JournalLost, match="verse salvage"):
            opened(tmp_path, readonly=True)
    for _ in range(2):
        with pytest.raises((JournalLost, BadState), match=r"verse salvage|was acknowledged"):
            opened(tmp_path)
    assert checkpoints == {f.name: f.read_bytes() for f in tmp_path.glob("checkpoint-*")}
    found = salvage(tmp_path)
    assert found.position == 30 and found.lost == (0 if mark == "kept" else None)
    everything = {f.name for f in (*tmp_path.iterdir(), *found.remains.iterdir())}
    assert set(checkpoints) <= everything  # nothing is deleted
    with opened(tmp_path) as again:
        assert same(again, clean(SAMPLES))
        assert again.learn_feature(*SAMPLES[0]) == 31
    with opened(tmp_path) as again:
        assert same(again, clean([*SAMPLES, SAMPLES[0]]))


def test_a_damaged_journal_and_a_damaged_checkpoint(tmp_path) -> None:
    teach(tmp_path, SAMPLES)
    newest = max(tmp_path.glob("checkpoint-*"))
    newest.write_bytes(newest.read_bytes()[:-5])
    (tmp_path / "journal.sqlite").write_bytes(b"not a database" * 100)
    found = salvage(tmp_path)
    assert found.position < 30 and found.lost == 30 - found.position
    with opened(tmp_path) as again:
        assert same(again, clean(SAMPLES[: found.position]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadState, match="no sound checkpoint"):
        salvage(tmp_path / "empty")


def test_another_process_makes_the_new_directory(tmp_path, monkeypatch) -> None:
    """Between the look and the making."""
    (tmp_path / "new").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda self, **_: False)
        opened(tmp_path / "new").close()
