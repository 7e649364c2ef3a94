"""What a directory holds, read without torch: the same as the opened classifier says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import verse
from verse.cli.glance import Glance, glance_at


def points(n: int) -> list[list[float]]:
    return [[float(i == j) for j in range(3)] for i in range(n)]


def check_same(directory: Path) -> None:
    held = glance_at(directory)
    with verse.open(directory, backbone=verse.backbones.identity((3,)), readonly=True) as opened:
        assert held == Glance(opened.taught, opened.learner.name)


def test_it_says_what_opening_says_whatever_was_done(tmp_path: Path) -> None:
    backbone = verse.backbones.identity((3,))
    with verse.open(tmp_path, backbone=backbone, learner="slda") as classifier:
        for z, label in zip(points(3) * 2, ["mug", "cup", "can"] * 2, strict=True):
            classifier.learn_one(z, label)
        check_same(tmp_path)  # beside a writer
        classifier.rename("can", "tin")
        classifier.merge("mug", "cup")
        classifier.undo(1)
        classifier.learn_one(points(1)[0], "bowl")
    check_same(tmp_path)  # from a checkpoint
    with verse.open(tmp_path, backbone=backbone) as classifier:
        classifier.learn_one(points(2)[1], "plate")
        classifier.forget("bowl")
        classifier.learn_one(points(2)[1], "plate")
        check_same(tmp_path)  # and from the journal after it
        assert glance_at(tmp_path).taught["plate"] == 2
    check_same(tmp_path)


def test_nothing_there_or_nothing_readable(tmp_path: Path) -> None:
    assert glance_at(tmp_path / "missing") is None and not (tmp_path / "missing").exists()
    journal = tmp_path / "journal.sqlite"
    journal.touch()
    assert glance_at(tmp_path) is None
    journal.write_bytes(b"SQLite format 3\0" + b"\xff" * 200)
    assert glance_at(tmp_path) is None


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff" * 200,
        (99_999).to_bytes(8, "little") + b"[" * 99_999,
        (2).to_bytes(8, "little") + b"{}",
        b"\x02" + b"\0" * 7 + b"[]",
    ],
    ids=["empty", "noise", "nested", "nothing in it", "a list"],
)
def test_a_damaged_checkpoint_is_left_to_the_opening(tmp_path: Path, damage: bytes) -> None:
    with verse.open(tmp_path, backbone=verse.backbones.identity((3,))) as classifier:
        classifier.learn_one(points(1)[0], "mug")
    (checkpoint,) = tmp_path.glob("checkpoint-*.verse")
    checkpoint.write_bytes(damage)
    assert glance_at(tmp_path) is None


def test_labels_of_an_old_folder_that_are_no_text_can_be_printed() -> None:
    shown = str(Glance({"caf\udce9": 1, "a\nb": 1}, "slda"))
    assert shown == "2 classes (caf\\udce9, a\\nb) taught by 2 samples, learner slda"


def test_many_classes_are_cut_short() -> None:
    assert str(Glance(dict.fromkeys("abcdefg", 1), "ncm")).startswith(
        "7 classes (a, b, c, d, e, f, …)"
    )


def test_torch_is_not_loaded() -> None:
    code = "import sys, verse.cli.glance, verse.cli.serve; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
