"""``verse doctor`` and ``verse test`` on a small taught classifier."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

import verse
from verse.cli import main

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


def paint(colour: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    texture = random.integers(-6, 6, (4, 4, 1)).repeat(16, 0).repeat(16, 1)
    return np.clip(np.array(COLOURS[colour]) + texture, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taught") / "model"
    with verse.open(folder) as classifier:
        for seed in range(8):
            for colour in ("red", "green"):
                classifier.learn_one(paint(colour, seed), colour)
        classifier.learn_one(paint("red", 99), "green")
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for colour in COLOURS:
        (folder / colour).mkdir()
        for seed in range(3):
            Image.fromarray(paint(colour, 50 + seed)).save(folder / colour / f"{seed}.png")
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_doctor_names_the_wrong_label(taught: Path) -> None:
    result = run("doctor", taught, "--json")
    document = json.loads(result.stdout)
    assert set(document) == {"classes", "confused", "suspects"}
    assert document["suspects"][0]["seq"] == 17
    assert document["suspects"][0]["looks_like"] == "red"
    shown = run("doctor", taught)
    assert shown.exit_code == 0
    assert "17" in shown.stdout and "green" in shown.stdout


def test_doctor_of_an_empty_classifier(tmp_path: Path) -> None:
    verse.open(tmp_path / "model", weights="random").close()
    result = run("doctor", tmp_path / "model")
    assert (result.exit_code, "Nothing to check" in result.stdout) == (0, True)


def test_test_counts_and_draws(taught: Path, pictures: Path, tmp_path: Path) -> None:
    result = run("test", taught, pictures, "--json", "--plot", tmp_path / "confusion.png")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert {"accuracy", "per_class", "confusion", "unknown"} <= set(document)
    assert document["images"] == 9
    assert document["accuracy"] == 1.0
    assert document["per_class"]["blue"]["accuracy"] is None  # never taught
    assert sum(row["images"] for row in document["confusion"]) == 9
    with Image.open(tmp_path / "confusion.png") as picture:
        assert picture.size[0] > 100
    told = " ".join(run("test", taught, pictures).stdout.split())
    assert "never taught" in told and "images of taught classes are nearest to their class" in told
    assert "of the images of classes never taught are called unknown, as they should be" in told


def test_test_passes_over_what_is_no_image(taught: Path, tmp_path: Path) -> None:
    (tmp_path / "red").mkdir()
    (tmp_path / "red" / "a.png").write_bytes(b"no image")
    Image.fromarray(paint("red", 1)).save(tmp_path / "red" / "b.png")
    document = json.loads(run("test", taught, tmp_path, "--json").stdout)
    assert (document["images"], len(document["unreadable"])) == (1, 1)


def test_test_needs_images(taught: Path, tmp_path: Path) -> None:
    result = run("test", taught, tmp_path)
    assert result.exit_code == 2
