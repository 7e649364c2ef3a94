"""Undo, rename, merge, forget and consolidate on disk."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
import torch

from tests.durable.taught import DIM, abandon, clean, opened, same, state, stream
from verse.durable import Lesson, NotWiped, TooLate, write_ahead
from verse.types import BadLabel, BadSetting, BadState


@pytest.mark.parametrize("back", [1, 2, 5, 10])
def test_undo_is_as_if_it_had_never_come(tmp_path, back) -> None:
    samples = stream(63)
    classifier = opened(tmp_path)
    for z, label in samples:
        classifier.learn_feature(z, label)
    assert classifier.undo(64 - back) == samples[-back][1]
    rest = samples[:-back] + samples[len(samples) - back + 1 :]
    assert same(classifier, clean(rest)) and classifier.samples == 62
    with pytest.raises(TooLate):
        classifier.undo(64 - back)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, clean(rest))


def test_undo_takes_a_class_back_and_ends_with_the_window(tmp_path) -> None:
    with opened(tmp_path) as classifier:
        with pytest.raises(TooLate):
            classifier.undo()
        for t in range(30):
            classifier.learn_feature(torch.ones(DIM) * t, "a")
        classifier.learn_feature(torch.ones(DIM), "new")
        assert classifier.undo() == "new"
        assert classifier.classes == ["a"] and classifier.taught == {"a": 30}
        for _ in range(9):
            classifier.undo()
        assert classifier.samples == 21
        with pytest.raises(TooLate, match="not among the last 10"):
            classifier.undo(2)


def test_rename_and_merge_survive_and_can_lose_their_class(tmp_path) -> None:
    classifier = opened(tmp_path)
    a, b, c = torch.eye(DIM)[:3] * 3
    first = classifier.learn_feature(a, "a")
    second = classifier.learn_feature(b, "b")
    classifier.rename("a", "A")
    classifier.merge("b", "A")
    classifier.learn_feature(c, "c")
    assert classifier.classes == ["A", "c"] and classifier.taught == {"A": 2, "c": 1}
    assert classifier.memory_counts() == {"A": 2, "c": 1}
    before = state(classifier)
    abandon(classifier)
    classifier = opened(tmp_path)
    assert same(classifier, before) and classifier.classes == ["A", "c"]
    for wrong in (
        lambda: classifier.rename("x", "y"),
        lambda: classifier.rename("A", "c"),
        lambda: classifier.merge("A", "x"),
        lambda: classifier.merge("A", "A"),
        lambda: classifier.forget("x"),
        lambda: classifier.rename("A", " "),
    ):
        with pytest.raises((BadLabel, BadSetting)):
            wrong()
    assert same(classifier, before)
    classifier.undo(first)  # then there never was an "a" to rename; merging into it is renaming
    assert classifier.classes == ["A", "c"] and classifier.taught == {"A": 1, "c": 1}
    classifier.undo(second)
    assert classifier.classes == ["c"]
    abandon(classifier)
    with opened(tmp_path) as again:
        assert again.classes == ["c"] and again.samples == 1


def files_hold(path: Path, needle: bytes) -> list[str]:
    return [f.name for f in path.iterdir() if needle in f.read_bytes()]


@pytest.mark.parametrize("crash", ["none", "after the entry", "after the checkpoint"])
def test_forgotten_is_gone_from_every_file(tmp_path, crash, monkeypatch) -> None:
    secret = torch.linspace(3.14159, 2.71828, DIM)
    needle = secret.numpy().tobytes()
    live, copy = tmp_path / "live", tmp_path / "copy"
    classifier = opened(live)
    for t in range(25):
        classifier.learn_lessons(
            [Lesson(secret, "secret name", f"k{t}", {"thumbnail": b"JPEG secret"})]
        )
        classifier.learn_feature(torch.ones(DIM) * t, "other")
    classifier.write_ahead.save(window=10)
    assert files_hold(live, needle) and files_hold(live, b"secret name")
    if crash == "after the entry":
        monkeypatch.setattr(classifier.write_ahead, "save", lambda window: None)
    if crash == "after the checkpoint":
        monkeypatch.setattr(classifier.directory, "remove_old_files", lambda: None)
        monkeypatch.setattr(classifier.directory, "wipe", lambda *_: None)
    assert classifier.forget("secret name") == 25
    after = state(classifier)
    if crash == "none":
        assert not files_hold(live, needle) and not files_hold(live, b"secret")
        with pytest.raises(TooLate):
            classifier.undo()
    else:
        assert files_hold(live, needle)
    # closing a database folds its log: only a copy is what a killed process leaves
    shutil.copytree(live, copy, ignore=shutil.ignore_patterns("*-shm", "lock"))
    classifier.close()
    monkeypatch.undo()
    again = opened(copy)
    assert same(again, after) and again.classes == ["other"]
    assert not files_hold(copy, needle) and not files_hold(copy, b"secret")
    assert again.thumbnails() == {} and again.fate_of("k3") == "forgotten"
    again.close()


def test_a_reader_cannot_hold_up_forgetting(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(write_ahead, "WIPE_SECONDS", 0.1)
    secret = torch.linspace(3.14159, 2.71828, DIM)
    needle = secret.numpy().tobytes()
    classifier = opened(tmp_path)
    for t in range(4):
        classifier.learn_feature(secret, "secret name")
        classifier.learn_feature(torch.ones(DIM) * t, "other")
    reader = sqlite3.connect(tmp_path / "journal.sqlite")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM entries").fetchone()
    with pytest.raises(NotWiped, match="a reader holds on to the old log"):  # and does not wait
        classifier.forget("secret name")
    classifier.learn_feature(torch.ones(DIM), "other")
    assert classifier.classes == ["other"]
    assert files_hold(tmp_path, needle) and classifier.undoable == [10]
    reader.close()
    classifier.learn_feature(torch.ones(DIM), "other")  # makes up for it
    assert not files_hold(tmp_path, needle)
    classifier.close()


def test_several_are_undone_at_once(tmp_path) -> None:
    samples = stream(40)
    with opened(tmp_path) as classifier:
        for z, label in samples:
            classifier.learn_feature(z, label)
        with pytest.raises(TooLate, match="sample 2 cannot"):
            classifier.undo_many([40, 2])
        assert classifier.samples == 40
        assert classifier.undo_many([33, 40, 36]) == [samples[i - 1][1] for i in (33, 40, 36)]
        rest = [s for i, s in enumerate(samples, 1) if i not in (33, 40, 36)]
        assert same(classifier, clean(rest)) and not {33, 36, 40} & set(classifier.undoable)
        for z, label in samples[:9]:
            classifier.learn_feature(z, label)
        classifier.undo_many(classifier.undoable[-9:])
        assert same(classifier, clean(rest))
    with opened(tmp_path) as again:
        assert same(again, clean(rest))


@pytest.mark.parametrize("learner", ["verse-joint", "verse", "derpp", "gdumb", "icarl"])
def test_undo_begins_in_memory(tmp_path, learner, monkeypatch) -> None:
    """No checkpoint is read, and what a snapshot holds is not changed by going on from it."""
    samples = stream(30)
    classifier = opened(tmp_path, learner=learner)
    # a slow machine would write a checkpoint in between, and begin there
    monkeypatch.setattr(classifier.write_ahead.timing, "checkpoint_due", lambda position: False)
    for z, label in samples:
        classifier.learn_feature(z, label)
    monkeypatch.setattr(classifier.directory, "load", None)
    for n in (3, 2, 4):
        classifier.undo_many(classifier.undoable[-n:])
        samples = samples[:-n]
        assert same(classifier, clean(samples, learner))
    classifier.close()


@pytest.mark.parametrize("saved", [(), (40, 80), (40, 70)])  # how fast a machine is decides
def test_after_opening_a_hold_is_undone_from_a_checkpoint_near_it(
    tmp_path, monkeypatch, saved
) -> None:
    """Closing keeps the state before the last hold: 20 samples are undone by learning few again."""
    monkeypatch.setattr(write_ahead, "UNDO_WINDOW", 100)
    samples = stream(80)
    with opened(tmp_path) as classifier:
        timing = classifier.write_ahead.timing
        monkeypatch.setattr(timing, "checkpoint_due", lambda position: position in saved)
        for z, label in samples:
            classifier.learn_feature(z, label)
    with opened(tmp_path) as again:
        learned = []
        replay = type(again.write_ahead.state).replay
        monkeypatch.setattr(
            type(again.write_ahead.state),
            "replay",
            lambda self, entry: (learned.append(entry.seq), replay(self, entry))[1],
        )
        again.undo_many(again.undoable[-20:])
        assert same(again, clean(samples[:-20])) and len(learned) <= 5


def test_an_undo_that_fails_changes_nothing(tmp_path, monkeypatch) -> None:
    samples = stream(12)
    classifier = opened(tmp_path)
    for z, label in samples:
        classifier.learn_feature(z, label)

    def fail(*_: object) -> None:
        raise BadState("made to fail")

    with monkeypatch.context() as patch:
        patch.setattr(classifier.write_ahead.state, "replay", fail)
        with pytest.raises(BadState, match="made to fail"):
            classifier.undo_many([10, 11])
    assert same(classifier, clean(samples)) and 10 in classifier.undoable
    classifier.learn_feature(*samples[0])
    with monkeypatch.context() as patch:  # neither forward nor back: learning stops
        patch.setattr(classifier.write_ahead.state, "restore", fail)
        with pytest.raises(BadState, match="made to fail"):
            classifier.undo()
    with pytest.raises(BadState, match=r"made to fail.*open the directory again"):
        classifier.learn_feature(*samples[1])
    classifier.close()
    with opened(tmp_path) as again:
        assert same(again, clean([*samples, samples[0]]))


def test_a_lost_undo_is_noticed(tmp_path) -> None:
    """Cut behind the last sample, the log still holds all of them; the mark knows better."""
    classifier = opened(tmp_path / "live")
    for z, label in stream(6):
        classifier.learn_feature(z, label)
    log = (tmp_path / "live" / "journal.sqlite-wal").read_bytes()
    classifier.undo()
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "live", copy, ignore=shutil.ignore_patterns("*-shm", "lock"))
    classifier.close()
    (copy / "journal.sqlite-wal").write_bytes(log)
    with pytest.raises(BadState, match="ends at entry 6, but entry 7 was acknowledged"):
        opened(copy)


def test_consolidate_is_journaled(tmp_path) -> None:
    classifier = opened(tmp_path, learner="gdumb")
    for z, label in stream(12):
        classifier.learn_feature(z, label)
    classifier.consolidate()
    before = state(classifier)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, before)
