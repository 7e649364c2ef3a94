"""Undo, rename, merge, forget and consolidate on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.durable.taught import DIM, abandon, clean, opened, same, state, stream
from verse.durable import Lesson, TooLate
from verse.types import BadLabel, BadSetting


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
    assert classifier.remembered() == {"A": 2, "c": 1}
    before = state(classifier)
    abandon(classifier)
    classifier = opened(tmp_path)
    assert same(classifier, before) and classifier.classes == ["A", "c"]
    for wrong in (lambda: classifier.rename("x", "y"), lambda: classifier.rename("A", "c"),
                  lambda: classifier.merge("A", "x"), lambda: classifier.merge("A", "A"),
                  lambda: classifier.forget("x"), lambda: classifier.rename("A", " ")):  # fmt: skip
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
    classifier = opened(tmp_path)
    for t in range(25):
        classifier.learn_lessons(
            [Lesson(secret, "secret name", None, {"thumbnail": b"JPEG secret"})]
        )
        classifier.learn_feature(torch.ones(DIM) * t, "other")
    classifier._write_ahead.save(window=10)
    assert files_hold(tmp_path, needle) and files_hold(tmp_path, b"secret name")
    if crash == "after the entry":
        monkeypatch.setattr(classifier._write_ahead, "save", lambda window: None)
    if crash == "after the checkpoint":
        monkeypatch.setattr(classifier._directory, "remove_old_files", lambda: None)
        monkeypatch.setattr(classifier._directory, "_wipe", lambda: None)
    assert classifier.forget("secret name") == 20
    after = state(classifier)
    if crash == "none":
        assert not files_hold(tmp_path, needle)
        assert not files_hold(tmp_path, b"secret")
        with pytest.raises(TooLate):
            classifier.undo()
        classifier.close()
    else:
        abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, after) and again.classes == ["other"]
        assert not files_hold(tmp_path, needle)
        assert not files_hold(tmp_path, b"secret")
        assert again.thumbnails() == {}


def test_consolidate_is_journaled(tmp_path) -> None:
    classifier = opened(tmp_path, learner="gdumb")
    for z, label in stream(12):
        classifier.learn_feature(z, label)
    classifier.consolidate()
    before = state(classifier)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, before)
