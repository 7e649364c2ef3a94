"""A full disk, flipped bits, files left over: nothing learned is lost or changed unnoticed."""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import pytest
import torch

from tests.durable.taught import DIM, abandon, clean, full_disk, opened, same, state, stream, teach
from verse import checkpoint
from verse.durable import JournalFull, Repaired, timing
from verse.saved import NotExact
from verse.types import VerseError


def test_full_disk_refuses_and_keeps_everything(tmp_path) -> None:
    samples = stream(30)
    classifier = opened(tmp_path)
    for z, label in samples[:20]:
        classifier.learn_feature(z, label)
    before = state(classifier)
    with full_disk():
        for act in (
            lambda: classifier.learn_feature(torch.ones(DIM), "new"),
            lambda: classifier.undo(),
            lambda: classifier.rename("class 0", "zero"),
            lambda: classifier.forget("class 0"),
        ):
            with pytest.raises(JournalFull, match="disk"):
                act()
            assert same(classifier, before) and classifier.samples == 20
        assert classifier.predict_feature(torch.ones(DIM)).label is not None
    for z, label in samples[20:]:
        classifier.learn_feature(z, label)
    assert same(classifier, clean(samples))
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, clean(samples))


def test_no_room_for_a_checkpoint_is_no_error(tmp_path, monkeypatch) -> None:
    """The journal holds everything; the checkpoint is tried again later."""

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(timing, "RETRY_SECONDS", 0)
    samples = stream(120)
    classifier = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", no_room)
        for z, label in samples[:60]:
            classifier.learn_feature(z, label)
    assert not list(tmp_path.glob("checkpoint-*"))
    for z, label in samples[60:]:
        classifier.learn_feature(z, label)
    assert list(tmp_path.glob("checkpoint-*"))
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, clean(samples))


def test_a_damaged_checkpoint_is_noticed_and_repaired_from_the_journal(tmp_path) -> None:
    samples = stream(57)
    teach(tmp_path, samples)
    newest = max(tmp_path.glob("checkpoint-*"))
    content = bytearray(newest.read_bytes())
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 1 << int(rng.integers(8))
        newest.write_bytes(damaged)
        with pytest.warns(Repaired, match="damaged"), opened(tmp_path, readonly=True) as reader:
            assert same(reader, clean(samples))
    newest.unlink()
    with pytest.warns(Repaired), opened(tmp_path) as again:
        assert same(again, clean(samples))
    with warnings.catch_warnings(), opened(tmp_path) as again:
        warnings.simplefilter("error")
        assert same(again, clean(samples))


def test_flipped_bits_anywhere_never_give_another_state(tmp_path) -> None:
    """Over every file of a directory that was not closed: noticed, repaired, or harmless."""
    samples = stream(24)
    classifier = opened(tmp_path / "live")
    for z, label in samples:
        classifier.learn_feature(z, label)
    source = tmp_path / "source"
    shutil.copytree(tmp_path / "live", source, ignore=shutil.ignore_patterns("*-shm", "lock"))
    classifier.close()
    expected = state(clean(samples))
    rng = np.random.default_rng(0)
    noticed = 0
    for file in sorted(source.iterdir()):
        raw = file.read_bytes()
        for _ in range(6):
            place = int(rng.integers(len(raw) * 8))
            damaged = bytearray(raw)
            damaged[place // 8] ^= 1 << (place % 8)
            now = tmp_path / "now"
            shutil.rmtree(now, ignore_errors=True)
            shutil.copytree(source, now)
            (now / file.name).write_bytes(damaged)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    again = opened(now)
                except VerseError:
                    noticed += 1
                    continue
            assert same(again, expected), f"bit {place} of {file.name}"
            noticed += bool(told)
            abandon(again)
    assert noticed >= 6


def test_left_over_files_are_removed(tmp_path) -> None:
    teach(tmp_path, stream(5))
    for name in (".checkpoint-000000000009.verse.77.part", "checkpoint-000000000099.verse"):
        (tmp_path / name).write_bytes(b"half")
    opened(tmp_path).close()
    assert {p.name for p in tmp_path.iterdir()} == {
        "acknowledged",
        "checkpoint-000000000005.verse",
        "journal.sqlite",
        "lock",
    }


def test_other_circumstances_are_told(tmp_path) -> None:
    teach(tmp_path, stream(3))
    torch.set_num_threads(2)
    try:
        with pytest.warns(NotExact, match="threads was 1, is 2"):
            opened(tmp_path).close()
    finally:
        torch.set_num_threads(1)
    with pytest.warns(NotExact):
        opened(tmp_path).close()
