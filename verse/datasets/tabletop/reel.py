"""Rendered frames of `tabletop` on disk: written once, mapped into memory, checked when read."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from verse.paths import open_atomic

Image = npt.NDArray[np.uint8]


class Reel:
    """An .npy file of frames [n, size, size, 3] followed by one checksum (CRC-32) per frame.

    A file appears whole or not at all (written under another name, then renamed), so any number of
    processes may write and read the same one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "two.npy"
    ...     Reel.write(path, 2, 4, iter([np.zeros((2, 4, 4, 3), np.uint8)]))
    ...     Reel.open(path, 2, 4).frame(1).sum()
    np.uint64(0)
    """

    def __init__(self, pixels: npt.NDArray[np.uint8], sums: npt.NDArray[np.uint32]) -> None:
        self._pixels, self._sums = pixels, sums

    def frame(self, i: int) -> Image | None:
        """Frame i, or None if it is damaged."""
        image = np.array(self._pixels[i])
        return image if zlib.crc32(image.tobytes()) == int(self._sums[i]) else None

    @staticmethod
    def open(path: Path, n: int, size: int) -> Reel | None:
        """The reel at `path`, or None if there is none, or not one of n whole frames."""
        shape = (n, size, size, 3)
        try:
            pixels = np.lib.format.open_memmap(path, mode="r")
            if pixels.shape != shape or pixels.dtype != np.uint8:
                return None
            sums = np.fromfile(path, "<u4", offset=pixels.offset + pixels.size)
        except (OSError, ValueError, EOFError):
            return None
        return Reel(pixels, sums) if len(sums) == n else None

    @staticmethod
    def write(path: Path, n: int, size: int, videos: Iterable[Image]) -> None:
        """Write n frames that arrive as videos [k, size, size, 3]."""
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path.parent)
        header = {"descr": "|u1", "fortran_order": False, "shape": (n, size, size, 3)}
        with open_atomic(path) as file:
            np.lib.format.write_array_header_1_0(file, header)
            sums: list[int] = []
            for video in videos:
                file.write(video.tobytes())
                sums.extend(zlib.crc32(image.tobytes()) for image in video)
            file.write(np.array(sums, "<u4").tobytes())


def _sweep(folder: Path) -> None:
    """Remove what a killed process left unfinished more than a day ago."""
    for part in folder.glob("*.part"):
        try:
            if time.time() - part.stat().st_mtime > 86400:
                part.unlink()
        except OSError:  # another process was faster
            continue
