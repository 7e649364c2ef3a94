"""iCubWorld28: 7 categories of 4 objects, shown to an iCub on 4 days (Pasquale et al., 2015).

On disk ``train/day1/cup/cup1/00004192.ppm`` and the same under ``test/``: side, day, category,
object, frame. Frames are numbered on through a day, so an object's first one is seldom 0; the order
of the numbers is that of time. Labels are the 7 categories; a video is one object on one day. The
archive also ships ``day4_manual_crop``, day 4 once more with other crops: it is no fifth day and is
left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from verse.datasets.base import Dataset
from verse.datasets.download import Archive, Progress, fetch_archive
from verse.datasets.official import (
    Expect,
    Video,
    assemble,
    check_counts,
    choose_folder,
    find_folder,
    folders,
    image_files,
    missing_error,
)

EXPECT = Expect(classes=7, train=20_363)
ARCHIVE = Archive(
    "https://data.mendeley.com/datasets/3n2vh9rdxd/1/files/"
    "9e3a79ef-18d9-4c37-b76c-0c34ead60544/iCubWorld28_128x128.zip?dl=1",
    hash=("md5", "d4fcdd02bdb0054688a213611a7a8ae7"),
)
PAGE = "https://robotology.github.io/iCubWorld"


def load(
    root: str | Path | None = None,
    download: bool = False,
    progress: Progress | None = None,
    expect: Expect = EXPECT,
) -> Dataset:
    """iCubWorld28 with its 7 categories, all four days on both sides."""
    start = choose_folder("icub28", root)
    found = find_folder(start, _fits)
    if found is None and download:
        fetch_archive(ARCHIVE, start, progress)
        found = find_folder(start, _fits)
    if found is None:
        raise missing_error(
            "iCubWorld28",
            start,
            "Download iCubWorld28_128x128.zip from "
            f"{PAGE} (iCubWorld28) and unpack it there, so that "
            f"{start}/train/day1/cup/cup1/ exists; or ask for it: "
            "verse run icub28 --data download=true, or "
            'load("icub28", options={"download": True})',
        )
    sides = {
        side: [day for day in folders(found / side) if re.fullmatch(r"day\d+", day.name)]
        for side in ("train", "test")
    }
    classes = sorted(
        {category.name for days in sides.values() for day in days for category in folders(day)}
    )
    videos = [
        Video(
            classes.index(category.name),
            f"{side}/{day.name}/{thing.name}",
            image_files(thing),
            side == "test",
        )
        for side, days in sides.items()
        for day in days
        for category in folders(day)
        for thing in folders(category)
    ]
    check_counts("iCubWorld28", found, expect, classes, videos, _guess)
    return assemble("icub28", found, classes, videos, "train/ and test/ of all four days")


def _fits(folder: Path) -> bool:
    return (folder / "train" / "day1").is_dir() and (folder / "test").is_dir()


def _guess(classes: int, train: int) -> str:
    if classes == 28:
        return (
            "It looks like a rearranged copy whose classes are the 28 objects; the official "
            "one has train/day1/cup/cup1: category, then object."
        )
    if classes == 7 and train < 7_000:
        return (
            "It looks like one day, or one object of each category (iCubWorld7); the whole "
            "set has four days of 28 objects."
        )
    return f"Unpack iCubWorld28_128x128.zip from {PAGE} again, days 1 to 4 on both sides."
