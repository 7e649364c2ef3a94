"""Frames that are image files, and the naming habits of folders full of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from verse.datasets.base import Image, Source
from verse.types import BadData, BadImage

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
    return ([folder / name for name, is_folder in shown if is_folder],
            [folder / name for name, is_folder in shown if not is_folder])


def images(files: Sequence[Path]) -> list[Path]:
    """Those of the files that are images by their ending."""
    return [path for path in files if path.suffix.lower() in IMAGES]


def read_image(path: Path) -> Image:
    """One image file as RGB [height, width, 3] uint8, or ``BadImage`` that says what is wrong."""
    try:
        with Pillow.open(path) as image:
            return np.asarray(image.convert("RGB"), dtype=np.uint8)
    except FileNotFoundError:
        raise BadImage(f"{path}: the file is gone") from None
    except PermissionError:
        raise BadImage(f"{path}: the file may not be read (permissions)") from None
    except Exception as error:  # damaged files raise almost anything from the decoders
        size = path.stat().st_size
        what = "the file is empty" if not size else f"not a readable image ({error})"
        raise BadImage(f"{path}: {what}") from None


class Files(Source):
    """Image files under one root, one frame each.

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
        return read_image(self.path(i))

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
