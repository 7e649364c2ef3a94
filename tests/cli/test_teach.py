"""``verse teach`` and ``verse predict``: a folder in, answers out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from PIL import Image

import verse
from verse.cli import main
from verse.configuration import DEFAULT_LEARNER

COLOURS = {"red": (200, 30, 30), "blue": (30, 30, 200)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for label, colour in COLOURS.items():
        for t in range(6):
            place = tmp_path / "images" / label / ("more" if t > 3 else "")
            place.mkdir(parents=True, exist_ok=True)
            pixels = np.clip(np.array(colour) + rng.integers(-25, 25, (32, 32, 3)), 0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(place / f"{t}.png")
    (tmp_path / "images" / "red" / "broken.jpg").write_bytes(b"junk")
    (tmp_path / "images" / "notes.txt").write_text("no class")
    return tmp_path / "images"


def call(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_teach_resume_predict(folder, tmp_path) -> None:
    directory = tmp_path / "taught"
    code, out, err = call("teach", directory, folder, "--mix", "--threads", 1, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["learned"], document["known"], document["samples"]) == (12, 0, 12)
    assert [Path(row["image"]).name for row in document["unreadable"]] == ["broken.jpg"]
    assert "broken.jpg" in err and document["classes"] == ["blue", "red"]

    Image.new("RGB", (32, 32), (190, 40, 40)).save(folder / "red" / "new.png")
    code, out, _ = call("teach", directory, folder, "--threads", 1)  # only what is new
    assert code == 0 and "1 image learned, 12 already known, 1 unreadable" in out

    asked = [folder / "red" / "new.png", folder / "blue" / "1.png"]
    code, out, _ = call("predict", directory, *asked, "--threads", 1, "--json")
    rows = json.loads(out)
    assert code == 0 and [row["nearest"] for row in rows] == ["red", "blue"]
    assert [row["known"] for row in rows] == [row["label"] is not None for row in rows]
    assert rows[0]["step"] == 13 and rows[0]["probabilities"][0]["label"] == "red"
    code, out, err = call(
        "predict", directory, asked[0], folder / "red" / "broken.jpg", "--threads", 1
    )
    assert code == 2 and "red" in out and "unreadable" in out
    assert err.count("broken.jpg") == 1  # named, and named once

    code, out, _ = call("predict", directory, folder / "blue", folder / "red" / "more", "--json")
    assert code == 0 and len(json.loads(out)) == 8
    (folder / "red" / "broken.jpg").unlink()
    code, out, _ = call("predict", directory, folder)
    assert code == 0 and "13 of 13 correct according to the folder names, 100.0%" in out
    (folder / "blue" / "1.png").rename(folder / "red" / "1-blue.png")
    code, out, _ = call("predict", directory, folder)
    assert "12 of 13 correct" in out and "red mistaken for blue: 1" in out
    (tmp_path / "none").mkdir()
    code, _, err = call("predict", directory, tmp_path / "none")
    assert code == 2 and "has no images" in err


def test_what_was_taken_back_is_taught_when_asked(folder, tmp_path) -> None:
    directory = tmp_path / "taught"
    call("teach", directory, folder, "--threads", 1)
    with verse.open(directory) as classifier:
        classifier.undo()
        classifier.forget("blue")
    code, out, _ = call("teach", directory, folder, "--threads", 1)
    assert code == 0 and "0 images learned, 5 already known" in out
    assert "7 images skipped because you have undone or forgotten them" in out
    for learned, known in ((7, 5), (0, 12)):  # asked twice, taught once more
        _, out, _ = call("teach", directory, folder, "--again", "--threads", 1, "--json")
        document = json.loads(out)
        assert (document["learned"], document["known"]) == (learned, known)
        assert document["taken_back"] == 0 and document["samples"] == 18


def test_forget(folder, tmp_path) -> None:
    directory, never = tmp_path / "taught", tmp_path / "never"
    call("teach", directory, folder, "--keep", "features", "--threads", 1)
    for wrong, told in (
        ((), "give either --label"),
        (("--label", "red", "--seq", 1), "give either --label"),
        (("--seq", 99), "there is no sample 99"),
        (("--label", "green"), "no class"),
        (("--seq", 1, "--retire"), "--retire needs a --label"),
    ):
        code, _, err = call("forget", directory, *wrong)
        assert code == 2 and told in err
    code, out, _ = call("forget", directory, "--label", "blue", "--threads", 1, "--json")
    assert code == 0 and json.loads(out)["forgotten"] == 6
    shutil.rmtree(folder / "blue")
    call("teach", never, folder, "--threads", 1)
    with verse.open(directory) as one, verse.open(never) as other:
        a, b = one.learner.state(), other.learner.state()
        assert a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)
    code, out, _ = call("forget", never, "--label", "red", "--retire")
    assert code == 0 and "retired" in out


def test_classes_of_a_model(folder, tmp_path) -> None:
    directory = tmp_path / "taught"
    code, _, err = call("classes", directory)
    assert code == 2 and "no classifier" in err and not directory.exists()
    call("teach", directory, folder, "--threads", 1)
    code, out, _ = call("classes", directory, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["classes"] == [
        {"class": "blue", "taught": 6, "remembered": 6},
        {"class": "red", "taught": 6, "remembered": 6},
    ]
    assert (found["samples"], found["learner"]) == (12, DEFAULT_LEARNER)
    code, out, _ = call("classes", directory)
    assert code == 0 and "2 classes, 12 samples learned, 12 samples remembered" in out


def test_an_interrupted_lesson_goes_on(folder, tmp_path, monkeypatch) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    call("teach", whole, folder, "--threads", 1)
    learn = verse.durable.DurableClassifier.learn_one
    count = 0

    def stop(self, *args, **kwargs):
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt
        return learn(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(verse.durable.DurableClassifier, "learn_one", stop)
        code, _, err = call("teach", parts, folder, "--threads", 1)
    assert code == 130 and "Everything so far is saved" in err
    code, out, _ = call("teach", parts, folder, "--threads", 1)
    assert code == 0 and "8 images learned, 4 already known" in out
    with verse.open(whole, readonly=True) as a, verse.open(parts, readonly=True) as b:
        left, right = a.learner.state(), b.learner.state()
        assert all((left[k] == right[k]).all() for k in left)


def test_what_cannot_be_done_is_told(folder, tmp_path) -> None:
    code, _, err = call("predict", tmp_path / "nowhere", folder / "red" / "0.png")
    assert code == 2 and "no classifier" in err
    (tmp_path / "empty" / "a").mkdir(parents=True)
    code, _, err = call("teach", tmp_path / "d", tmp_path / "empty")
    assert code == 2 and "one subfolder of images per class" in err


def test_nothing_is_begun_where_nothing_can_be_taught(folder, tmp_path) -> None:
    """Swapped arguments, a name that is no label, and pictures that are none."""
    before = sorted(folder.rglob("*"))
    for command in (("teach", folder, folder), ("serve", folder, "--port", 0)):
        code, _, err = call(*command)
        assert code == 2 and "has other files and no classifier" in " ".join(err.split())
    assert sorted(folder.rglob("*")) == before
    bad = tmp_path / "bad"
    (bad / "caf\udce9").mkdir(parents=True)
    (bad / "caf\udce9" / "a.png").touch()
    code, _, err = call("teach", tmp_path / "d", bad)
    assert code == 2 and "rename this folder" in err
    (bad / "caf\udce9").rename(bad / "cup")
    (tmp_path / "disk" / "lost+found").mkdir(parents=True)  # as good as empty
    code, out, err = call("teach", tmp_path / "disk", bad, "--threads", 1)
    assert code == 2 and "0 images learned" in out
    code, out, err = call("teach", tmp_path / "d", bad, "--threads", 1)
    assert code == 2 and "0 images learned" in out and "a.png" in err
    assert not (tmp_path / "d").exists()
