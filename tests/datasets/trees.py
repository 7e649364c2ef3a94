"""Small trees of images in the exact layouts of real data sets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image


def image(path: Path, value: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    form = "JPEG" if path.suffix in (".JPEG", ".jpg") else None
    Image.fromarray(np.full((4, 6, 3), value, np.uint8)).save(path, format=form)
    return path


def grow(root: Path, paths: Iterable[str]) -> Path:
    for k, path in enumerate(paths):
        image(root / path, k % 256)
    return root


def videos(root: Path, classes: dict[str, dict[str, int]], ending: str = "png") -> Path:
    """``class/video/frame`` with so many frames each."""
    return grow(
        root,
        (
            f"{c}/{v}/{k}.{ending}"
            for c, of in classes.items()
            for v, n in of.items()
            for k in range(n)
        ),
    )
