"""iCubWorld 1.0: 10 categories shown to an iCub in a laboratory (Fanello et al., CVPRW 2013).

On disk ``train/<category>/<object>/*`` with three objects a category, about 200 frames each, and
``test/<condition>/<category>/…`` for four conditions:

- *categorization*: a fourth, unseen object of every category, about 200 frames each;
- *demonstrator*: the known objects in the hand of another person;
- *background*: ten selected images a category, with segmentation masks; the masks are
  not frames and are left out;
- *robot*: the robot itself holds known or new objects; 320 × 320 pixels. All others are crops of
  160 × 160.

The paper does not say which it tests on; *categorization* is the default, as in earlier work on
streams. A video is one object.
"""

from __future__ import annotations

import re
from pathlib import Path

from verse.datasets.base import Dataset, join_names
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
from verse.images import rgb
from verse.types import BadData, BadImage, BadSetting

EXPECT = Expect(classes=10, train=6_002)
CONDITIONS = ("categorization", "demonstrator", "background", "robot")
PAGE = "https://robotology.github.io/iCubWorld"
ADDRESS = "http://www.icub.org/download/datasets/iCubWorld.zip"
MASK = re.compile(r"(^|[^a-z])(masks?|seg|segm|segmentations?|ground_?truth|gt)([^a-z]|$)")
HELLO = (
    "It looks like 'Hello iCubWorld', an earlier set of 7 objects with human/ and robot/ "
    "inside, whose archive has the similar name iCubWorld1.0.zip."
)


def load(
    root: str | Path | None = None, test: str = "categorization", expect: Expect = EXPECT
) -> Dataset:
    """iCubWorld 1.0; ``test`` is one of its four test conditions."""
    if test not in CONDITIONS:
        raise BadSetting(
            f"iCubWorld 1.0 has the test conditions {', '.join(CONDITIONS)}, not {test!r}"
        )
    start = choose_folder("icub1", root)
    found = find_folder(
        start,
        lambda folder: (
            all((folder / side).is_dir() for side in ("train", "test"))
            and folder.name not in ("human", "robot")
        ),
    )
    hello = find_folder(start, lambda folder: (folder / "human" / "train").is_dir())
    if found is None and hello is not None:
        raise BadData(
            f"{hello} is not iCubWorld 1.0: it has human/train with "
            f"{len(folders(hello / 'human' / 'train'))} classes. {HELLO} {_what(start)}"
        )
    if found is None:
        raise missing_error("iCubWorld 1.0", start, _what(start))
    condition = next((f for f in folders(found / "test") if f.name.lower() == test), None)
    if condition is None:
        raise BadData(
            f"{found / 'test'} has no {test}/ but "
            f"{join_names([f.name for f in folders(found / 'test')]) or 'nothing'}. "
            f"{_what(start)}"
        )
    trained = [category.name for category in folders(found / "train")]
    videos = [*_side(found / "train", trained, False), *_side(condition, trained, True)]
    check_counts("iCubWorld 1.0", found, expect, trained, videos, lambda n, _: _guess(n, start))
    return assemble("icub1", found, trained, videos, f"train/ and test/{condition.name}/")


def _side(side: Path, classes: list[str], test: bool) -> list[Video]:
    """The videos of a side; a condition may have a level more (known and new objects)."""
    inside = [folder for folder in folders(side) if not is_mask(folder)]
    if not any(folder.name in classes for folder in inside):
        deeper = [f for f in inside if any(inner.name in classes for inner in folders(f))]
        if deeper:
            return [video for f in deeper for video in _side(f, classes, test)]
    videos = []
    for category in inside:
        if category.name not in classes:
            raise BadData(
                f"{category} is tested but never trained; training has {join_names(classes)}"
            )
        label = classes.index(category.name)
        # A category tested on one object may hold its frames directly.
        for thing in (category, *folders(category)):
            if not is_mask(thing):
                files = image_files(thing)
                if side.name.lower() == "background":
                    files = [file for file in files if not is_mask(file)]
                name = f"{side.name}/{category.name}/{thing.name}"
                videos += [Video(label, name, files, test)] if files else []
    return videos


def is_mask(path: Path) -> bool:
    """Whether a folder or an image holds segmentation masks: by its name, or all black and white.

    >>> is_mask(Path("background/cup/masks")), is_mask(Path("background/cup/massage"))
    (True, False)
    """
    if MASK.search(path.stem.lower()):
        return True
    if not path.is_file():
        return False
    try:
        pixels = rgb(path)
    except BadImage:
        return False  # told as unreadable when it is read
    plain = (pixels < 16).all(-1) | (pixels > 239).all(-1)  # JPEG blurs the border
    return bool(plain.mean() > 0.98)


def _what(start: Path) -> str:
    return (
        f"Get iCubWorld 1.0 (40 objects in 10 categories): {ADDRESS}, which {PAGE} links under "
        "Previous Releases (not iCubWorld1.0.zip, which is 'Hello iCubWorld'). Unpack it so that "
        f"{start}/train/<category>/<object>/ and {start}/test/categorization/ exist; no hash is "
        "published, so it is not fetched for you."
    )


def _guess(classes: int, start: Path) -> str:
    return (HELLO + " " if classes == 7 else "") + _what(start)
