"""``verse watch``: a film becomes events; wrong options say what to do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import verse
from tests.watch.stream import COLOURS
from verse import backbones
from verse.cli import main

av = pytest.importorskip("av", reason="films need the extra video (PyAV)")


def encode(path: Path, scenes: list[str]) -> Path:
    """Two seconds of each colour, ten frames a second, with some texture."""
    random = np.random.default_rng(0)
    texture = random.integers(-20, 20, (6, 8, 1)).repeat(8, 0).repeat(8, 1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for scene in scenes:
            image = np.clip(np.array(COLOURS[scene]) + texture, 0, 255).astype(np.uint8)
            for _ in range(20):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(image, "rgb24")))
        container.mux(stream.encode())
    return path


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier that knows red and green by their features."""
    place = tmp_path_factory.mktemp("taught")
    folder = place / "model"
    film = encode(place / "lesson.mp4", ["red", "green"])
    with verse.open(folder, weights="random") as classifier:
        for shot in verse.video.shots(str(film)):
            classifier.learn_one(shot.image, "red" if shot.time < 2 else "green")
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["watch", *(str(a) for a in arguments)])


def test_a_film_becomes_events(taught: Path, tmp_path: Path) -> None:
    film = encode(tmp_path / "door.mp4", ["red", "green", "red"])
    events = tmp_path / "events.jsonl"
    result = run(film, "--model", taught, "--every", 0.2, "--hold", 0.5, "--events", events)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    told = [(line["event"], line["label"]) for line in lines if line["event"] != "unknown"]
    assert told == [("appeared", "red"), ("changed", "green"), ("changed", "red")]
    assert 2 <= lines[1]["seconds"] <= 3.2


def test_a_background_class_means_nothing_is_there(taught: Path, tmp_path: Path) -> None:
    film = encode(tmp_path / "door.mp4", ["red", "green", "red"])
    result = run(film, "--model", taught, "--every", 0.2, "--background", "red")
    kinds = [json.loads(line)["event"] for line in result.stdout.splitlines()]
    assert [kind for kind in kinds if kind != "unknown"] == ["appeared", "gone"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere.txt"], "camera:0, rtsp"),
        (["film.mp4", "--teach-topic", "t"], "needs --mqtt"),
        (["film.mp4", "--webhook", "ftp://x"], "http://"),
        (["film.mp4", "--mqtt", "http://x"], "mqtt://HOST"),
    ],
)
def test_wrong_options_say_what_to_do(
    taught: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    encode(tmp_path / "film.mp4", ["red"])
    name, *others = options
    result = run(tmp_path / name, "--model", taught, *others)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    film = encode(tmp_path / "film.mp4", ["red"])
    result = run(film, "--model", tmp_path / "none")
    assert result.exit_code == 2
    assert not (tmp_path / "none").exists()


def test_identity_backbones_cannot_see(tmp_path: Path) -> None:
    verse.open(tmp_path / "model", backbone=backbones.identity((3,))).close()
    film = encode(tmp_path / "film.mp4", ["red"])
    assert run(film, "--model", tmp_path / "model").exit_code == 2
