"""A fake camera's film: objects on a turntable, with a mark beside what the page looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT, RATE = 320, 240, 20
MARK = 24  # pixels at the left edge; the centre square begins at 40
LUMA_STEP = 40  # scene i has a mark of this much more light


@dataclass(frozen=True)
class Scene:
    """One object after the other; each view stays for ``hold`` frames, the last one ``rest`` more.

    During the rest the mark is dark, so that whoever holds a button can let go.
    """

    views: Sequence[Path]
    hold: int = 3
    rest: int = 12


def write(path: Path, scenes: Sequence[Scene]) -> None:
    """An uncompressed film (Y4M), the format that Chromium's fake camera reads."""
    with path.open("wb") as film:
        film.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{RATE}:1 Ip A1:1 C420jpeg\n".encode())
        for number, scene in enumerate(scenes, 1):
            for view in scene.views:
                film.write(_frame(view, number * LUMA_STEP) * scene.hold)
            film.write(_frame(scene.views[-1], 0) * scene.rest)


def _frame(view: Path, light: int) -> bytes:
    square = np.asarray(Image.open(view).convert("RGB").resize((HEIGHT, HEIGHT)))
    side = (WIDTH - HEIGHT) // 2
    picture = np.pad(square, ((0, 0), (side, side), (0, 0)), "symmetric")
    picture[:, :MARK] = light
    y, *colours = Image.fromarray(picture).convert("YCbCr").split()
    half = [c.resize((WIDTH // 2, HEIGHT // 2), Image.Resampling.BOX) for c in colours]
    return b"FRAME\n" + b"".join(plane.tobytes() for plane in (y, *half))
