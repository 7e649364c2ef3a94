"""Where frames come from: a live camera (latest frame only), a film, or a folder that fills."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verse.datasets.files import IMAGES
from verse.datasets.films import pixels
from verse.types import BadData
from verse.video import is_live, is_video, shots
from verse.video.source import open_video

LONGEST_PAUSE = 30.0  # seconds between two attempts to reach a camera
PATIENCE = 10.0  # seconds without a frame until a camera counts as gone


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: seconds since the start, and an image; ``image`` is None while the camera is gone.

    Parameters
    ----------
    seconds
        Since the start.
    image
        In any form; None while the camera is gone.

    >>> Frame(0.5, None).image is None
    True
    """

    seconds: float
    image: Any


def open_frames(
    source: str,
    *,
    every: float = 0.5,
    seconds: float | None = None,
    from_start: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Frame]:
    """Frames of a camera, a stream, a film or a folder, at most one in ``every`` seconds.

    A camera that goes away is tried again for ever, with growing pauses; meanwhile one frame
    without an image says so. Of a live source only the newest frame is given: slow work drops
    frames instead of lagging behind. ``from_start`` also gives the images that a folder holds
    already. ``tell`` is called with messages for the user.
    """
    if is_live(source):
        return _live(source, every, seconds, tell)
    if is_video(source):
        return (
            Frame(shot.time, shot.image) for shot in shots(source, every=every, seconds=seconds)
        )
    if Path(source).is_dir():
        return _folder(Path(source), every, seconds, from_start)
    raise BadData(
        f"{source} is no camera, stream, film or folder: use camera:0, rtsp://…, http://…, a film "
        "file, or a folder into which images are written"
    )


class LatestFrame:
    """Reads a live source in a separate thread and keeps only its newest frame."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.error: str | None = None
        self._frame: Any = None
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, name=f"watch {source}", daemon=True).start()

    def _read(self) -> None:
        try:
            with open_video(self.source, timeout=PATIENCE) as container:
                for frame in container.decode(video=0):
                    with self._changed:
                        if self._ended:
                            return
                        self._frame = frame
                        self._changed.notify()
            self.error = "the stream ended"
        except (OSError, ValueError) as error:
            self.error = str(error)
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify()

    def take(self, wait: float) -> Any | None:
        """The newest frame that was not taken yet; None after ``wait`` seconds or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._frame is not None or self._ended, wait)
            frame, self._frame = self._frame, None
        return None if frame is None else pixels(frame)

    @property
    def ended(self) -> bool:
        """Will no further frame come?"""
        return self._ended and self._frame is None

    def close(self) -> None:
        """Let the thread end at its next frame."""
        with self._changed:
            self._ended = True


def _live(
    source: str, every: float, seconds: float | None, tell: Callable[[str], None]
) -> Iterator[Frame]:
    start = time.monotonic()
    end = math.inf if seconds is None else start + seconds
    pause, gone = 0.5, False
    while time.monotonic() < end:
        camera = LatestFrame(source)
        silent_since = time.monotonic()
        try:
            while (now := time.monotonic()) < end:
                image = camera.take(min(0.5, max(0.0, end - now)))
                now = time.monotonic()
                if image is not None:
                    silent_since, pause, gone = now, 0.5, False
                    yield Frame(now - start, image)
                    time.sleep(max(0.0, min(every - (time.monotonic() - now), end - now)))
                elif camera.ended or now - silent_since > PATIENCE:
                    break
        finally:
            camera.close()
        if time.monotonic() >= end:
            return
        if not gone:
            gone = True
            tell(f"{source} is gone ({camera.error or 'no frame came'}); trying again")
            yield Frame(time.monotonic() - start, None)
        time.sleep(max(0.0, min(pause, end - time.monotonic())))
        pause = min(2 * pause, LONGEST_PAUSE)


def _folder(folder: Path, every: float, seconds: float | None, from_start: bool) -> Iterator[Frame]:
    start = time.monotonic()
    seen: set[str] = set() if from_start else set(_sizes(folder))
    waiting: dict[str, int] = {}  # a file is complete once its size no longer changes
    while seconds is None or time.monotonic() - start < seconds:
        sizes = {name: size for name, size in _sizes(folder).items() if name not in seen}
        for name, size in sizes.items():
            if waiting.get(name) == size and size > 0:
                seen.add(name)
                yield Frame(time.monotonic() - start, folder / name)
        waiting = sizes
        seen &= set(_sizes(folder)) | set(sizes)  # a removed name may come again
        time.sleep(every)


def _sizes(folder: Path) -> dict[str, int]:
    """Image files, oldest first, with their sizes."""
    rows = []
    for path in folder.iterdir():
        if path.suffix.lower() in IMAGES and not path.name.startswith("."):
            try:
                facts = path.stat()
            except OSError:  # removed meanwhile
                continue
            rows.append((facts.st_mtime, path.name, facts.st_size))
    return {name: size for _, name, size in sorted(rows)}
