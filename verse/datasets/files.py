"""Frames that are image files, and the naming habits of folders full of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from verse.datasets.base import Image, Source
from verse.images import rgb
from verse.types import BadData

IMAGES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".webp", ".tif", ".tiff"})
FILMS = frozenset({".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg"})


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key under which ``frame2`` comes before ``frame10``.

    >>> sorted(["f10", "f2", "F1"], key=natural)
    ['F1', 'f2', 'f10']
    """
    parts = re.findall(r"\d+|\D+", name)
    key = [(0, int(p), "") if p.isdecimal() else (1, 0, p.casefold()) for p in parts]
    return (*key, (2, 0, name))  # the name itself last: 1 and 01 keep one fixed order


def visible(folder: Path) -> tuple[list[Path], list[Path]]:
    """The sub-folders and the files of a folder in natural order, without hidden ones."""
    try:
        with os.scandir(folder) as found:  # knows folders from files without asking the disk again
            entries = [(entry.name, entry.is_dir()) for entry in found]
    except FileNotFoundError:
        raise BadData(f"there is no folder {folder}") from None
    except NotADirectoryError:
        raise BadData(f"{folder} is a file, not a folder of images") from None
    except PermissionError:
        raise BadData(f"the folder {folder} may not be read (permissions)") from None
    shown = [entry for entry in entries if not entry[0].startswith((".", "__MACOSX"))]
    shown.sort(key=lambda entry: natural(entry[0]))
    return (
        [folder / name for name, is_folder in shown if is_folder],
        [folder / name for name, is_folder in shown if not is_folder],
    )


def images(files: Sequence[Path]) -> list[Path]:
    """Those of the files that are images by their ending."""
    return [path for path in files if path.suffix.lower() in IMAGES]


def holds_classes(folder: Path) -> bool:
    """Whether a folder inside this one holds folders, images or films.

    >>> holds_classes(Path("no such folder"))
    False
    """
    if not folder.is_dir():
        return False
    for inside in visible(folder)[0]:
        folders, files = visible(inside)
        if folders or any(path.suffix.lower() in IMAGES | FILMS for path in files):
            return True
    return False


class Files(Source):
    """Image files under one root, one frame each.

    Parameters
    ----------
    root
        The folder.
    relative
        Paths below it, one a frame.

    >>> Files(Path("data"), ["cup/1/0.png"]).path(0).as_posix()
    'data/cup/1/0.png'
    """

    def __init__(self, root: Path, relative: Sequence[str]) -> None:
        self.root = root
        self.relative = tuple(relative)

    def path(self, i: int) -> Path:
        """The file of frame ``i``."""
        return self.root / self.relative[i]

    def read(self, i: int) -> Image:
        return rgb(self.path(i))

    def key(self, i: int) -> str:
        path = self.path(i)
        try:
            stat = path.stat()
        except OSError:
            return f"{path.absolute()}|gone"
        return f"{path.absolute()}|{stat.st_size}|{stat.st_mtime_ns}"

    def name(self, i: int) -> str:
        path = self.path(i)
        return f"{self.relative[i]}|{path.stat().st_size if path.exists() else 'gone'}"
