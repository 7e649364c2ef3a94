"""Frames of real HTTP and RTSP streams, of a film and of a folder that fills."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.watch.rtsp import RTSPCamera
from tests.watch.stream import COLOURS, Camera, make_jpeg
from verse.types import BadData
from verse.watch.frames import Frame, open_frames

pytest.importorskip("av", reason="streams need the extra video (PyAV)")


@pytest.fixture(params=[Camera, RTSPCamera], ids=["http", "rtsp"])
def camera(request: pytest.FixtureRequest) -> Iterator[Camera | RTSPCamera]:
    camera = request.param("red")
    yield camera
    camera.stop()


def take_until(frames: Iterator[Frame], wanted: str | None, patience: float = 20.0) -> Frame:
    """The first frame of a colour (None: the first without an image)."""
    end = time.monotonic() + patience
    for frame in frames:
        if wanted is None:
            if frame.image is None:
                return frame
        elif frame.image is not None:
            distance = abs(frame.image.reshape(-1, 3).mean(0) - COLOURS[wanted]).max()
            if distance < 40:
                return frame
        assert time.monotonic() < end, f"no {wanted} within {patience} s"
    raise AssertionError("the frames ended")


def test_a_killed_camera_is_joined_again(camera: Camera | RTSPCamera) -> None:
    told: list[str] = []
    frames = open_frames(camera.url, every=0.05, tell=told.append)
    assert take_until(frames, "red").image.shape == (48, 64, 3)
    camera.stop()
    take_until(frames, None)
    assert "is gone" in told[0]
    camera.colour = "green"
    camera.start()
    take_until(frames, "green")


def test_slow_work_drops_frames_instead_of_lagging(camera: Camera | RTSPCamera) -> None:
    frames = open_frames(camera.url, every=0.01)
    take_until(frames, "red")
    for _ in range(5):
        next(frames)
        time.sleep(0.3)  # work six times slower than the camera
    camera.colour = "blue"
    changed = camera.sent
    take_until(frames, "blue")
    # a reader that lags would still have the 25 red frames of that second and a half before it
    assert camera.sent - changed < 20


def test_it_ends_after_its_seconds(camera: Camera | RTSPCamera) -> None:
    start = time.monotonic()
    assert len(list(open_frames(camera.url, every=0.1, seconds=4.0))) >= 1
    assert time.monotonic() - start < 20


def test_a_folder_that_fills_gives_complete_new_files(tmp_path: Path) -> None:
    (tmp_path / "old.jpg").write_bytes(make_jpeg("red"))
    frames = open_frames(str(tmp_path), every=0.05, seconds=3.0)

    def fill() -> None:
        time.sleep(0.3)
        with (tmp_path / "new.jpg").open("wb") as file:  # written in two parts
            picture = make_jpeg("green")
            file.write(picture[:100])
            file.flush()
            time.sleep(0.02)
            file.write(picture[100:])
        (tmp_path / "notes.txt").write_text("no image")

    writer = threading.Thread(target=fill)
    writer.start()
    assert [frame.image.name for frame in frames] == ["new.jpg"]
    writer.join()


def test_a_folder_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "old.jpg").write_bytes(make_jpeg("red"))
    frames = open_frames(str(tmp_path), every=0.05, seconds=0.3, from_start=True)
    assert [frame.image.name for frame in frames] == ["old.jpg"]


def test_what_is_no_source_says_what_would_be() -> None:
    with pytest.raises(BadData, match=r"camera:0, rtsp"):
        open_frames("nowhere.txt")
