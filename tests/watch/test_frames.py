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
from verse.watch import frames as module
from verse.watch.frames import Frame, open_frames

pytest.importorskip("av", reason="streams need the extra video (PyAV)")


@pytest.fixture(params=[Camera, RTSPCamera], ids=["http", "rtsp"])
def camera(request: pytest.FixtureRequest) -> Iterator[Camera | RTSPCamera]:
    camera = request.param("red")
    yield camera
    camera.stop()


def is_of(frame: Frame, colour: str) -> bool:
    return bool(abs(frame.image.reshape(-1, 3).mean(0) - COLOURS[colour]).max() < 40)


def take_until(frames: Iterator[Frame], wanted: str | None, patience: float = 90.0) -> Frame:
    """The first frame of a colour (None: the first without an image)."""
    end = time.monotonic() + patience
    for frame in frames:
        if wanted is None:
            if frame.image is None:
                return frame
        elif frame.image is not None and is_of(frame, wanted):
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
    old = 0
    while not is_of(next(frames), "blue"):
        old += 1
    # a reader that lags would give the 25 or more red frames of that second and a half first
    assert old < 10


def test_it_ends_after_its_seconds(camera: Camera | RTSPCamera) -> None:
    start = time.monotonic()
    frames = list(open_frames(camera.url, every=0.1, seconds=1.0))
    assert time.monotonic() - start < 60
    assert all(frame.seconds < 1.5 for frame in frames[:-1])


def test_a_folder_that_fills_gives_complete_new_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.jpg").write_bytes(make_jpeg("red"))
    frames = open_frames(str(tmp_path), every=0.05)
    looked, sizes = threading.Event(), module._sizes

    def look(folder: Path) -> dict[str, int]:
        found = sizes(folder)
        looked.set()
        return found

    monkeypatch.setattr(module, "_sizes", look)

    def fill() -> None:
        looked.wait(60)
        with (tmp_path / "new.jpg").open("wb") as file:  # written in two parts
            picture = make_jpeg("green")
            file.write(picture[:100])
            file.flush()
            time.sleep(0.02)
            file.write(picture[100:])
        (tmp_path / "notes.txt").write_text("no image")
        (tmp_path / "next.jpg").write_bytes(make_jpeg("green"))

    writer = threading.Thread(target=fill)
    writer.start()
    assert [next(frames).image.name for _ in range(2)] == ["new.jpg", "next.jpg"]
    writer.join()


def test_a_folder_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "old.jpg").write_bytes(make_jpeg("red"))
    frames = open_frames(str(tmp_path), every=0.05, from_start=True)
    assert next(frames).image.name == "old.jpg"


def test_what_is_no_source_says_what_would_be() -> None:
    with pytest.raises(BadData, match=r"camera:0, rtsp"):
        open_frames("nowhere.txt")
