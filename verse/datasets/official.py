"""What the readers of published data sets share: finding a copy, and refusing the wrong one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from verse.datasets.base import Dataset, Frames, join_names
from verse.datasets.files import Files, images, visible
from verse.paths import data_directory
from verse.types import BadData


@dataclass(frozen=True)
class Expect:
    """The counts a whole copy has (``None``: not checked).

    >>> Expect(classes=10, train=6002).train
    6002
    """

    classes: int
    train: int | None
    test: int | None = None


@dataclass(frozen=True)
class Video:
    """One video found on disk: its class, its name, its image files in time order."""

    label: int
    name: str
    files: Sequence[Path]
    test: bool


def choose_folder(name: str, root: str | Path | None) -> Path:
    """The folder the user gave, or the one where the data set is put."""
    return data_directory() / name if root is None else Path(root).expanduser()


def find_folder(start: Path, fits: Callable[[Path], bool]) -> Path | None:
    """``start``, or a folder in it (archives bring one of their own), that looks right."""
    if not start.is_dir():
        return None
    return next((folder for folder in (start, *visible(start)[0]) if fits(folder)), None)


def missing_error(title: str, start: Path, what: str) -> BadData:
    """The error for a copy that is not there: what to get, and where to put it."""
    if not start.is_dir():
        found = "there is no such folder"
    else:
        folders, files = visible(start)
        found = "found " + (
            join_names([f.name + "/" for f in folders] + [f.name for f in files])
            or "an empty folder"
        )
    return BadData(f"{title} is not in {start} ({found}). {what}")


def folders(path: Path) -> list[Path]:
    """Sub-folders in natural order; none where there is no folder."""
    return visible(path)[0] if path.is_dir() else []


def image_files(path: Path) -> list[Path]:
    """Image files in natural order."""
    return images(visible(path)[1])


def assemble(
    name: str, root: Path, classes: Sequence[str], videos: Sequence[Video], split: str
) -> Dataset:
    """A data set from videos, numbered in the order given."""
    lengths = [len(video.files) for video in videos]
    files = [file.relative_to(root).as_posix() for video in videos for file in video.files]
    frames = Frames(
        np.repeat([video.label for video in videos], lengths).astype(np.int64),
        np.repeat(np.arange(len(videos)), lengths),
        np.array([k for n in lengths for k in range(n)], dtype=np.int64),
        Files(root, files),
    )
    test = np.repeat([video.test for video in videos], lengths).astype(bool)
    return Dataset(
        name,
        tuple(classes),
        frames.take(~test),
        frames.take(test),
        split,
        {k: video.name for k, video in enumerate(videos)},
    )


def check_counts(
    title: str,
    root: Path,
    expect: Expect,
    classes: Sequence[str],
    videos: Sequence[Video],
    guess: Callable[[int, int], str],
) -> None:
    """Refuse a copy whose counts are wrong; ``guess(classes, train)`` says what it may be."""
    train = sum(len(video.files) for video in videos if not video.test)
    test = sum(len(video.files) for video in videos if video.test)
    wrong = []
    if len(classes) != expect.classes:
        wrong.append(f"{len(classes)} classes ({join_names(classes)}), not {expect.classes}")
    if expect.train is not None and train != expect.train:
        wrong.append(f"{train:,} training images, not {expect.train:,}")
    if expect.test is not None and test != expect.test:
        wrong.append(f"{test:,} test images, not {expect.test:,}")
    if wrong:
        raise BadData(
            f"{root} is not a whole copy of {title}: it has {' and '.join(wrong)}. "
            + guess(len(classes), train)
        )
