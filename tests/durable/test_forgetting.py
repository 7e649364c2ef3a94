"""Exact forgetting: the classifier that never saw it, and no file that holds anything of it."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.durable.taught import DIM, abandon, clean, entries, opened, same, state, stream
from verse.durable import Lesson, TooLate, backup, forgetting
from verse.types import BadLabel, BadSetting

SECRET = torch.linspace(3.14159, 2.71828, DIM)
NEEDLES = (SECRET.numpy().tobytes(), b"secret")


def files_hold(path: Path) -> list[str]:
    return [f.name for f in path.iterdir() if any(n in f.read_bytes() for n in NEEDLES)]


def mixed(n: int) -> list[tuple[torch.Tensor, str]]:
    """Classes that alternate, the third of which is to be forgotten."""
    return [(z, f"class {t % 4}") for t, (z, _) in enumerate(stream(n))]


@pytest.mark.parametrize(
    "learner", ["verse-joint", "verse", "verse-lda", "derpp", "slda", "icarl", "si"]
)
def test_as_if_it_had_never_come(tmp_path, learner) -> None:
    samples = mixed(60)
    classifier = opened(tmp_path, learner=learner, keep="features")
    for z, label in samples:
        classifier.learn_feature(z, label)
    heard: list[tuple[int, int]] = []
    removed = classifier.forget_exactly(label="class 2", progress=lambda *p: heard.append(p))
    rest = [(z, label) for z, label in samples if label != "class 2"]
    never = clean(rest, learner)
    assert removed == 15 and same(classifier, never) and classifier.samples == 45
    assert all(torch.equal(v, never.state()[k]) for k, v in classifier.copy().state().items())
    assert classifier.classes == never.classes and "class 2" not in classifier.taught
    assert heard[-1][0] == heard[-1][1] and [done for done, _ in heard] == sorted(
        done for done, _ in heard
    )
    classifier.forget_exactly(seqs=[1, 60])  # one sample, a hold
    assert same(classifier, clean(rest[1:-1], learner))
    classifier.learn_feature(*samples[2])
    classifier.undo_many(classifier.undoable[-3:])
    expected = clean([*rest[1:-1], samples[2]][:-3], learner)
    assert same(classifier, expected)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, expected) and again.keep == "features"


def teach_secret(path: Path):
    classifier = opened(path, keep="features")
    others = []
    for t in range(30):
        if t % 3 == 1:
            thumbnail = {"thumbnail": b"JPEG secret"}
            classifier.learn_lessons([Lesson(SECRET + 0, "secret name", f"k{t}", thumbnail)])
        else:
            others.append((torch.ones(DIM) * t, f"class {t % 2}"))
            classifier.learn_feature(*others[-1])
        if t == 16:
            classifier.rename("secret name", "secret other")
            classifier.learn_feature(SECRET, "secret name")
            classifier.merge("secret name", "secret other")
    classifier.merge("secret name", "secret other")
    classifier.write_ahead.save(window=10)
    return classifier, others


@pytest.mark.parametrize("crash", ["none", "before", "after the write", "after the checkpoint"])
def test_no_file_holds_anything_of_it(tmp_path, crash, monkeypatch) -> None:
    """Killed anywhere, the next opening has finished it or knows nothing of it."""
    live, copy = tmp_path / "live", tmp_path / "copy"
    classifier, others = teach_secret(live)
    before = state(classifier)
    assert files_hold(live)

    def killed(*_: object, **__: object) -> None:
        shutil.copytree(live, copy, ignore=shutil.ignore_patterns("*-shm", "lock"))
        raise KeyboardInterrupt

    place = {
        "before": (classifier.journal, "forget"),
        "after the write": (classifier.write_ahead, "become"),
        "after the checkpoint": (classifier.directory, "wipe"),
    }.get(crash)
    if place is None:
        assert classifier.forget_exactly(label="secret other") == 11
        assert not files_hold(live)
        assert classifier.thumbnails() == {} and classifier.fate_of("k4") == "forgotten"
        backup(live, tmp_path / "backup.zip")
        with zipfile.ZipFile(tmp_path / "backup.zip") as archive:
            assert not any(n in archive.read(f) for f in archive.namelist() for n in NEEDLES)
        shutil.copytree(live, copy, ignore=shutil.ignore_patterns("*-shm", "lock"))
    else:
        with monkeypatch.context() as patch:
            patch.setattr(*place, killed)
            with pytest.raises(KeyboardInterrupt):
                classifier.forget_exactly(label="secret other")
    classifier.close()
    again = opened(copy)
    if crash == "before":
        assert same(again, before) and again.taught["secret other"] == 11
    else:
        assert same(again, clean(others)) and again.classes == ["class 0", "class 1"]
        assert not files_hold(copy)
    again.close()


def test_what_cannot_be_forgotten_exactly_is_told(tmp_path) -> None:
    with opened(tmp_path) as classifier:  # keeps only what can be undone
        for z, label in mixed(60):
            classifier.learn_feature(z, label)
        before = state(classifier)
        for what in ({"label": "class 0"}, {"seqs": [1]}):
            with pytest.raises(TooLate, match="keep='features'"):
                classifier.forget_exactly(**what)
        with pytest.raises(TooLate, match="there is no sample 77"):
            classifier.forget_exactly(seqs=[60, 77])
        for what in ({}, {"label": "class 0", "seqs": [60]}):
            with pytest.raises(BadSetting, match="say what to forget"):
                classifier.forget_exactly(**what)
        with pytest.raises(BadLabel):
            classifier.forget_exactly(label="none")
        assert same(classifier, before)
        assert classifier.forget_exactly(seqs=[58]) == 1  # the latest are there anyway
        rest = [s for i, s in enumerate(mixed(60), 1) if i != 58]
        assert same(classifier, clean(rest))
    for wrong in ({"keep": "all"}, {"keep_bytes": 0}):
        with pytest.raises(BadSetting):
            opened(tmp_path / "x", **wrong)


def test_calling_it_off_changes_nothing(tmp_path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 20:
            raise KeyboardInterrupt

    with opened(tmp_path, keep="features") as classifier:
        for z, label in mixed(40):
            classifier.learn_feature(z, label)
        with pytest.raises(KeyboardInterrupt):
            classifier.forget_exactly(label="class 1", progress=stop)
        assert same(classifier, clean(mixed(40)))
        classifier.learn_feature(*mixed(41)[40])


def test_what_is_kept_is_bounded(tmp_path, monkeypatch) -> None:
    # Checkpoints take no time here, so that one is written every 25 samples on any machine.
    monkeypatch.setattr("verse.durable.timing.time", SimpleNamespace(monotonic=lambda: 0.0))
    size = 4 * DIM
    with opened(tmp_path, keep="features", keep_bytes=50 * size) as classifier:
        for z, label in mixed(200):
            classifier.learn_feature(z, label)
        classifier.write_ahead.save(window=10)
        assert 30 <= entries(classifier) <= 50
        with pytest.raises(TooLate):
            classifier.forget_exactly(seqs=[100])
        classifier.forget_exactly(seqs=[170])
    with opened(tmp_path, keep="none") as classifier:  # the choice can be changed
        for z, label in mixed(20):
            classifier.learn_feature(z, label)
        classifier.write_ahead.save(window=10)
        assert entries(classifier) < 30
    assert forgetting.BEFORE == 0  # no entry has that number
