"""What earlier versions left on disk opens, answers as it did, and goes on learning."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import verse
from tests.stored.make import KINDS, tell_before_and_after
from verse import durable
from verse.classifier import StreamClassifier

STORED = Path(__file__).parent / "stored"
VERSIONS = sorted(folder.name for folder in STORED.iterdir() if (folder / "expected.json").exists())
CHECKPOINTS = sorted(STORED.glob("*/*/checkpoint.verse"))
BACKUPS = sorted(STORED.glob("*/*/backup.zip"))
DIRECTORIES = sorted(path.parent for path in STORED.glob("*/*/*/journal.sqlite"))

# made on another machine, which is told and is not what is tested here
pytestmark = pytest.mark.filterwarnings("ignore::verse.saved.NotExact")


def name(path: Path) -> str:
    return path.relative_to(STORED).as_posix()


def expected(path: Path, what: str) -> dict:
    version, kind, _ = path.relative_to(STORED).parts
    told = json.loads((STORED / version / "expected.json").read_text(encoding="utf-8"))
    found: dict = told[f"{kind}/{what}"]
    return found


def check_answers(classifier, path: Path, then: dict) -> None:
    kind = path.relative_to(STORED).parts[1]
    now = tell_before_and_after(classifier, kind)
    # other processors; and a class that left takes no part in what is learned later any more
    for moment, tolerance in (("stored", 2e-3), ("later", 2e-2)):
        assert now[moment]["classes"] == then[moment]["classes"]
        assert now[moment]["samples"] == then[moment]["samples"]
        pairs = zip(now[moment]["probabilities"], then[moment]["probabilities"], strict=True)
        for answer, before in pairs:
            assert dict(answer) == pytest.approx(dict(before), abs=tolerance)


def check_directory(directory: Path, path: Path) -> None:
    kind, then = path.relative_to(STORED).parts[1], expected(path, "directory")
    with verse.open(directory, backbone=KINDS[kind][0]()) as classifier:
        assert [list(item) for item in classifier.taught.items()] == then["taught"]
        assert classifier.undoable == then["undoable"]
        assert classifier.seq_of("key 3") == 4
        assert set(classifier.thumbnails()) and classifier.keep_images == (kind == "derpp")
        check_answers(classifier, path, then)
        after = classifier.samples
    with verse.open(directory, backbone=KINDS[kind][0]()) as classifier:
        assert classifier.samples == after  # what was taught now is kept, too
        classifier.undo()


def test_there_is_something_of_each_version() -> None:
    assert VERSIONS and CHECKPOINTS and BACKUPS and DIRECTORIES


@pytest.mark.parametrize("path", CHECKPOINTS, ids=name)
def test_a_checkpoint_of_before(path, tmp_path) -> None:
    kind = path.relative_to(STORED).parts[1]
    classifier = StreamClassifier.load(path, backbone=KINDS[kind][0]())
    classifier.save(tmp_path / "again.verse")
    check_answers(classifier, path, expected(path, "checkpoint"))
    again = StreamClassifier.load(tmp_path / "again.verse", backbone=KINDS[kind][0]())
    check_answers(again, path, expected(path, "checkpoint"))


@pytest.mark.parametrize("path", DIRECTORIES, ids=name)
def test_a_directory_of_before(path, tmp_path) -> None:
    shutil.copytree(path, tmp_path / "copy")
    check_directory(tmp_path / "copy", path)


@pytest.mark.parametrize("path", BACKUPS, ids=name)
def test_a_backup_of_before(path, tmp_path) -> None:
    durable.restore(path, tmp_path / "restored")
    check_directory(tmp_path / "restored", path)


@pytest.mark.parametrize("path", DIRECTORIES, ids=name)
def test_a_reader_of_a_directory_of_before(path, tmp_path) -> None:
    kind, then = path.relative_to(STORED).parts[1], expected(path, "directory")
    shutil.copytree(path, tmp_path / "copy")
    backbone = KINDS[kind][0]()
    with verse.open(tmp_path / "copy", backbone=backbone, readonly=True) as classifier:
        assert classifier.classes == then["stored"]["classes"]
        assert classifier.samples == then["stored"]["samples"]
