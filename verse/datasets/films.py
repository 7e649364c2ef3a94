"""Frames inside film files, through PyAV (the extra ``video``)."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from verse.datasets.base import Image
from verse.datasets.files import FILMS, Files
from verse.extras import OptionalImport
from verse.types import BadData, BadImage


def _open(path: Path) -> Any:
    with OptionalImport():
        import av
    try:
        container = av.open(str(path))
    except (OSError, ValueError) as error:  # PyAV's errors are both, by kind
        raise BadData(f"{path} cannot be opened as a film: {error}") from None
    if not container.streams.video:
        container.close()
        raise BadData(f"{path} has no video track")
    return container


def pixels(frame: Any) -> Image:
    """A decoded frame as RGB [height, width, 3], upright: phones note how they were held."""
    upright = np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90))
    return np.ascontiguousarray(upright, dtype=np.uint8)


def _times(path: Path) -> list[int]:
    """The presentation time of every frame, ascending: frame i is shown at the i-th."""
    with _open(path) as container:
        times = [p.pts for p in container.demux(video=0) if p.pts is not None]
    if not times:
        raise BadData(f"{path} has no frames")
    return sorted(times)


def count_frames(path: Path) -> int:
    """How many frames a film has, without decoding it."""
    return len(_times(path))


@functools.lru_cache(maxsize=100_000)
def _content_digest(path: Path, _size: int, _time_ns: int) -> str:
    # Reading a film costs nothing beside decoding it, and a copy keeps its features; size and
    # time only tell when to read again.
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Film:
    """One open film: reading forward decodes each frame once, jumping seeks a key frame.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.times = _times(path)
        self.container = _open(path)
        self.ahead: Iterator[Any] = iter(self.container.decode(video=0))
        self.position = 0

    def read(self, i: int) -> Image:
        if i != self.position:
            stream = self.container.streams.video[0]
            self.container.seek(self.times[i], stream=stream, backward=True)
            self.ahead = iter(self.container.decode(video=0))
        for frame in self.ahead:
            if frame.pts is not None and frame.pts >= self.times[i]:
                self.position = i + 1
                return pixels(frame)
        self.position = -1
        raise BadImage(f"{self.path}: frame {i} cannot be decoded")

    def close(self) -> None:
        self.container.close()


class _Reader(threading.local):
    """What one thread has open: one film at a time."""

    film: Film | None = None


class Films(Files):
    """A mixture of image files and frames of films under one root.

    Parameters
    ----------
    root
        The folder.
    relative
        Path of each frame's file below it.
    positions
        Place of each frame in its film.

    >>> Films(Path("data"), ["cup/spin.mp4", "cup/spin.mp4"], [0, 1]).path(1).as_posix()
    'data/cup/spin.mp4'
    """

    def __init__(self, root: Path, relative: Sequence[str], positions: Sequence[int]) -> None:
        super().__init__(root, relative)
        self.positions = tuple(positions)
        self._forget()

    def _forget(self) -> None:
        # A film for each thread that reads: streams read videos in order, and two threads that
        # shared one decoder would take it from each other at every frame.
        self.reader = _Reader()

    def __getstate__(self) -> dict[str, object]:
        return {"root": self.root, "relative": self.relative, "positions": self.positions}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["root"], state["relative"], state["positions"])  # type: ignore[misc]

    def read(self, i: int) -> Image:
        path = self.path(i)
        if path.suffix.lower() not in FILMS:
            return super().read(i)
        reader = self.reader
        if reader.film is None or reader.film.path != path:
            if reader.film is not None:
                reader.film.close()
            reader.film = Film(path)
        try:
            return reader.film.read(self.positions[i])
        except (OSError, ValueError) as error:
            reader.film = None
            raise BadImage(f"{path}: frame {self.positions[i]}: {error}") from None

    def key(self, i: int) -> str:
        path = self.path(i)
        if path.suffix.lower() not in FILMS:
            return super().key(i)
        try:
            stat = path.stat()
        except OSError:
            return f"{super().key(i)}|{self.positions[i]}"
        digest = _content_digest(path, stat.st_size, stat.st_mtime_ns)
        return f"film|{digest}|{self.positions[i]}"

    def name(self, i: int) -> str:
        return f"{super().name(i)}|{self.positions[i]}"
