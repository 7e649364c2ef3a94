"""Your own images: ``class/video/frame.*``, ``class/frame.*`` or ``class/video.mp4``.

Each class folder may use its own one of the three. A folder with ``train/`` and ``test/`` inside
is split already; otherwise a rule says what to hold out (see :mod:`verse.datasets.splits`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from verse.datasets.base import Dataset, Frames, Source, join_names
from verse.datasets.files import FILMS, Files, images, natural, visible
from verse.datasets.splits import split_frames
from verse.types import BadData, BadSetting


@dataclass
class Listing:
    """Frames found so far: one row each, video ids in natural order of class, then name."""

    paths: list[str] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    videos: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)

    def add(self, label: int, name: str, paths: list[str]) -> None:
        """One more video: its frames in time order (of a film: its path, once per frame)."""
        video = len(self.names)
        self.names[video] = name
        self.paths += paths
        self.labels += [label] * len(paths)
        self.videos += [video] * len(paths)
        self.frames += range(len(paths))

    def over(self, source: Source) -> Frames:
        """The listing as frames of ``source``, whose numbers are the listing's rows."""
        return Frames(
            np.array(self.labels, dtype=np.int64),
            np.array(self.videos, dtype=np.int64),
            np.array(self.frames, dtype=np.int64),
            source,
        )


def load(path: str | Path, holdout: str | None = None) -> Dataset:
    """Read a folder of classes.

    Without ``holdout``: ``train/`` and ``test/`` inside the folder if they are there, else the
    last video of each class, else (a class with one video) the last fifth of each video.
    """
    root = Path(path).expanduser()
    folders, loose = visible(root)
    name = root.absolute().name
    if {"train", "test"} == {folder.name for folder in folders}:
        if holdout is not None:
            raise BadSetting(
                f"{root} has train/ and test/ inside, so it takes no --holdout; "
                f"to split one side yourself give its folder ({root / 'train'})"
            )
        return _ready_split(root, name)
    if not folders:
        what = "images but no folders" if images(loose) else "nothing"
        raise BadData(
            f"{os.path.abspath(root)} holds {what}: it needs one folder per class with its images "
            "inside"
        )
    classes = tuple(folder.name for folder in folders)
    frames, names = _frames(root, _list(root, folders))
    if holdout is None:
        several = all(
            len(np.unique(frames.videos[frames.labels == y])) > 1 for y in range(len(classes))
        )
        holdout = "last:1" if several else "fraction:0.2"
    return split_frames(name, classes, frames, names, holdout)


def _ready_split(root: Path, name: str) -> Dataset:
    folders = visible(root / "train")[0]
    classes = tuple(folder.name for folder in folders)
    tested = visible(root / "test")[0]
    if extra := [folder.name for folder in tested if folder.name not in classes]:
        raise BadData(
            f"{root}: test has classes that training never shows ({join_names(extra)}), so "
            "every answer on them would be wrong; leave them out"
        )
    listing = _list(root, folders)
    trained = len(listing.labels)
    _list(root, tested, listing, classes)
    frames, names = _frames(root, listing)
    return Dataset(
        name,
        classes,
        frames.take(np.arange(trained)),
        frames.take(np.arange(trained, len(frames))),
        "train/ and test/",
        names,
    )


def _list(
    root: Path,
    folders: list[Path],
    listing: Listing | None = None,
    classes: tuple[str, ...] | None = None,
) -> Listing:
    listing = listing or Listing()
    order = classes or tuple(folder.name for folder in folders)
    for folder in folders:
        _list_class(root, folder, order.index(folder.name), listing)
    return listing


def _list_class(root: Path, folder: Path, label: int, listing: Listing) -> None:
    inside, files = visible(folder)
    frames = images(files)
    films = [path for path in files if path.suffix.lower() in FILMS]
    if frames and (inside or films):
        other = join_names([p.name + "/" for p in inside] + [p.name for p in films], 2)
        raise BadData(
            f"class {folder.name!r} mixes layouts: frames such as {frames[0].name} beside"
            f" videos such as {other}; put the frames in a folder of their own"
        )
    if not (frames or inside or films):
        found = join_names(sorted({path.suffix or path.name for path in files}))
        raise BadData(
            f"class {folder.name!r} has no images in {folder}"
            + (f" (only {found})" if found else "")
            + "; add images or remove the folder"
        )
    if frames:
        listing.add(label, folder.name, [p.relative_to(root).as_posix() for p in frames])
    for video in sorted(inside + films, key=lambda path: natural(path.name)):
        if video in films:
            _list_film(root, video, label, listing)
            continue
        deeper, files = visible(video)
        if deeper:
            raise BadData(
                f"{video} has folders inside; the layout is class/video/frame, so "
                f"{deeper[0].name}/ is one level too deep"
            )
        if not (found_frames := images(files)):
            raise BadData(f"the video folder {video} has no images; add some or remove it")
        listing.add(label, video.name, [p.relative_to(root).as_posix() for p in found_frames])


def _list_film(root: Path, path: Path, label: int, listing: Listing) -> None:
    from verse.datasets.films import count_frames

    listing.add(label, path.stem, [path.relative_to(root).as_posix()] * count_frames(path))


def _frames(root: Path, listing: Listing) -> tuple[Frames, dict[int, str]]:
    films = any(Path(p).suffix.lower() in FILMS for p in dict.fromkeys(listing.paths))
    if not films:
        return listing.over(Files(root, listing.paths)), listing.names
    from verse.datasets.films import Films

    return listing.over(Films(root, listing.paths, listing.frames)), listing.names
