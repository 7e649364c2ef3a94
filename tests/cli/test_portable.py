"""``verse export --teachable``, ``verse import`` and ``verse merge``."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import verse
from verse.cli import main


@pytest.fixture(scope="module")
def robots(tmp_path_factory):
    """Two directories with a real backbone of random weights: both know grey."""
    folder = tmp_path_factory.mktemp("robots")
    for name, colours in (("a", {"grey": 128, "black": 0}), ("b", {"grey": 128, "white": 255})):
        random = np.random.default_rng(len(name))
        with verse.open(folder / name, weights="random", threads=1) as robot:
            for _ in range(3):
                for label, value in colours.items():
                    noise = random.integers(-8, 8, (64, 64, 3))
                    robot.learn_one(np.clip(value + noise, 0, 255).astype(np.uint8), label)
        saved = run("export", folder / name, folder / f"{name}.verse", "--teachable", "--json")
        assert saved["form"] == "teachable" and saved["samples"] == 6
    return folder


def run(*words):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout) if "--json" in words else result.stdout


def fails(*words) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 2 and result.stdout == ""
    return result.stderr


def test_a_file_is_imported_and_taught_on(robots, tmp_path) -> None:
    assert "2 classes after 6 samples" in run("import", robots / "a.verse", tmp_path / "c")
    found = run("classes", tmp_path / "c", "--json")
    assert [(row["class"], row["taught"]) for row in found["classes"]] == [
        ("grey", 3),
        ("black", 3),
    ]
    with verse.open(tmp_path / "c") as classifier:
        classifier.learn_one(np.full((64, 64, 3), 255, np.uint8), "white")
        assert classifier.classes == ["grey", "black", "white"]
    assert "already exists" in fails("import", robots / "a.verse", tmp_path / "c")


def test_files_are_merged(robots, tmp_path) -> None:
    files = robots / "a.verse", robots / "b.verse"
    told = fails("merge", *files, "--out", tmp_path / "c.verse")
    assert "grey" in told and "--same" in told and "--separate" in told and "--rename-b" in told
    assert not (tmp_path / "c.verse").exists()
    merged = run("merge", *files, "--out", tmp_path / "c.verse", "--same", "--json")
    assert merged["labels"] == ["grey", "black", "white"] and merged["samples"] == 12
    run("import", tmp_path / "c.verse", tmp_path / "c")
    found = run("classes", tmp_path / "c", "--json")
    assert [row["taught"] for row in found["classes"]] == [6, 3, 3]
    assert "already exists" in fails("merge", *files, "--out", tmp_path / "c.verse", "--same")


def test_directories_are_merged_to_a_directory(robots, tmp_path) -> None:
    words = ("merge", robots / "a", robots / "b.verse", "--out", tmp_path / "c", "--json")
    assert run(*words, "--rename-b", "grey=silver")["labels"] == [
        "grey",
        "black",
        "silver",
        "white",
    ]
    with verse.open(tmp_path / "c", readonly=True) as classifier:
        assert classifier.taught == {"grey": 3, "black": 3, "silver": 3, "white": 3}
    words = ("merge", robots / "b", robots / "a", "--out", tmp_path / "d", "--json")
    assert "grey (2)" in run(*words, "--separate")["labels"]


@pytest.mark.parametrize(
    ("answers", "labels"),
    [("y\n", ["grey", "black", "white"]), ("n\nsilver\n", ["grey", "black", "silver", "white"])],
)
def test_a_terminal_is_asked(robots, tmp_path, monkeypatch, answers, labels) -> None:
    monkeypatch.setattr("verse.cli.merge.has_terminal", lambda: True)
    words = [
        "merge",
        robots / "a.verse",
        robots / "b.verse",
        "--out",
        tmp_path / "c.verse",
        "--json",
    ]
    result = CliRunner().invoke(main, [str(word) for word in words], input=answers)
    assert result.exit_code == 0 and "the same class" in result.stderr
    assert json.loads(result.stdout)["labels"] == labels


def test_what_cannot_be_done_is_told(robots, tmp_path) -> None:
    (tmp_path / "junk").write_bytes(b"junk")
    for words in (
        ("import", tmp_path / "junk", tmp_path / "c"),
        ("import", tmp_path / "nothing", tmp_path / "c"),
        ("merge", robots / "a", tmp_path / "junk", "--out", tmp_path / "c"),
        ("merge", robots / "a.verse", tmp_path / "nothing", "--out", tmp_path / "c"),
        ("merge", tmp_path, robots / "a", "--out", tmp_path / "c"),
        ("merge", robots / "a", robots / "b", "--out", tmp_path / "c", "--rename-b", "grey"),
        ("merge", robots / "a", robots / "b", "--out", tmp_path / "c", "--same", "--separate"),
    ):
        assert fails(*words).startswith("Error: ")
    assert not (tmp_path / "c").exists()
