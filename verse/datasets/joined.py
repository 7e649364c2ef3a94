"""Several data sets in one stream: their classes side by side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from verse.datasets.base import Dataset, Frames, Image, Source
from verse.types import BadSetting

FORM = "joined needs parts, each a data set and its split rule: gtsrb last:3 + asl last:1"


def load(parts: str = "", root: str | Path | None = None) -> Dataset:
    """Join the folders that ``parts`` names, "A RULE + B RULE"; a rule is left out where a folder
    decides itself. Classes and videos of each part keep apart from those of the others.

    A class is called "part/class". Features are found under the same identity as those of the part
    alone, so nothing is computed again.
    """
    from verse.datasets import load as load_one

    found = []
    for text in parts.split("+"):
        name, *rule = text.split() or [""]
        if not name or len(rule) > 1:
            raise BadSetting(FORM)
        spec = name if ":" in name else f"folder:{name}"
        found.append(load_one(spec, root, rule[0] if rule else None))
    names = [part.name for part in found]
    if len(found) < 2 or len(set(names)) != len(names):
        raise BadSetting(f"{FORM}; each of them once, two at least")
    return join(found)


def join(parts: Sequence[Dataset]) -> Dataset:
    """One data set of all; the parts' order is that of the classes."""
    starts = list(itertools.accumulate((len(part.classes) for part in parts), initial=0))
    videos = [0]
    for part in parts:
        used = np.concatenate([part.train.videos, part.test.videos])
        videos.append(videos[-1] + int(used.max()) + 1)
    return Dataset(
        name="+".join(part.name for part in parts),
        classes=tuple(f"{part.name}/{name}" for part in parts for name in part.classes),
        train=_side([part.train for part in parts], starts, videos),
        test=_side([part.test for part in parts], starts, videos),
        split=" + ".join(f"{part.name} {part.split}" for part in parts),
        video_names={
            first + video: f"{part.name}/{name}"
            for first, part in zip(videos, parts, strict=False)
            for video, name in part.video_names.items()
        },
        allow_untested=True,  # the parts have said so themselves
    )


def _side(sides: Sequence[Frames], starts: Sequence[int], videos: Sequence[int]) -> Frames:
    return Frames(
        np.concatenate([side.labels + k for side, k in zip(sides, starts, strict=False)]),
        np.concatenate([side.videos + v for side, v in zip(sides, videos, strict=False)]),
        np.concatenate([side.frames for side in sides]),
        Chain(sides),
    )


class Chain(Source):
    """The frames of several sides, one side after the other.

    >>> class Grey(Source):
    ...     def read(self, i):
    ...         return np.full((4, 4, 3), i, np.uint8)
    ...     def key(self, i):
    ...         return f"grey {i}"
    >>> side = Frames([0, 0], [0, 0], [0, 1], Grey())
    >>> Chain([side, side]).key(3)
    'grey 1'
    """

    def __init__(self, sides: Sequence[Frames]) -> None:
        self.sides = tuple(sides)
        self.ends = np.cumsum([len(side) for side in sides])

    def _find(self, i: int) -> tuple[Frames, int]:
        k = int(np.searchsorted(self.ends, i, side="right"))
        return self.sides[k], i - (int(self.ends[k - 1]) if k else 0)

    def read(self, i: int) -> Image:
        side, j = self._find(i)
        return side.read(j)

    def key(self, i: int) -> str:
        side, j = self._find(i)
        return side.key(j)

    def name(self, i: int) -> str:
        side, j = self._find(i)
        return side.name(j)
