"""iCubWorld 1.0: 10 categories shown to an iCub in a laboratory (Fanello et al., CVPRW 2013).

On disk ``train/<category>/<object>/*`` with three objects a category, about 200 frames each, and
``test/<condition>/<category>/…`` for four conditions: *categorization* shows a fourth, unseen
object of every category, the others (*demonstrator*, *background*, *robot*) change who or what
holds the known ones. The paper does not say which it tests on; *categorization* is the default, as
in earlier work on streams (about 200 test frames a category). A video is one object.
"""

from __future__ import annotations

from pathlib import Path

from verse.datasets.base import Dataset, few
from verse.datasets.official import (
    Expect,
    Video,
    assemble,
    counted,
    find,
    folders,
    image_files,
    missing,
    place,
)
from verse.types import BadData, BadSetting

EXPECT = Expect(classes=10, train=6_002)
CONDITIONS = ("categorization", "demonstrator", "background", "robot")
PAGE = "https://robotology.github.io/iCubWorld"
HELLO = (
    "It looks like 'Hello iCubWorld', an earlier set of 7 objects with human/ and robot/ "
    "inside, which is often passed on under the name iCubWorld1.0."
)


def load(
    root: str | Path | None = None, test: str = "categorization", expect: Expect = EXPECT
) -> Dataset:
    """iCubWorld 1.0; ``test`` is one of its four test conditions."""
    if test not in CONDITIONS:
        raise BadSetting(
            f"iCubWorld 1.0 has the test conditions {', '.join(CONDITIONS)}, not {test!r}"
        )
    start = place("icub1", root)
    found = find(
        start,
        lambda folder: (
            all((folder / side).is_dir() for side in ("train", "test"))
            and folder.name not in ("human", "robot")
        ),
    )
    hello = find(start, lambda folder: (folder / "human" / "train").is_dir())
    if found is None and hello is not None:
        raise BadData(
            f"{hello} is not iCubWorld 1.0: it has human/train with "
            f"{len(folders(hello / 'human' / 'train'))} classes. {HELLO} {_what(start)}"
        )
    if found is None:
        raise missing("iCubWorld 1.0", start, _what(start))
    condition = next((f for f in folders(found / "test") if f.name.lower() == test), None)
    if condition is None:
        raise BadData(
            f"{found / 'test'} has no {test}/ but "
            f"{few([f.name for f in folders(found / 'test')]) or 'nothing'}. "
            f"{_what(start)}"
        )
    trained = [category.name for category in folders(found / "train")]
    videos = [*_side(found / "train", trained, False), *_side(condition, trained, True)]
    counted("iCubWorld 1.0", found, expect, trained, videos, lambda n, _: _guess(n, start))
    return assemble("icub1", found, trained, videos, f"train/ and test/{condition.name}/")


def _side(side: Path, classes: list[str], test: bool) -> list[Video]:
    videos = []
    for category in folders(side):
        if category.name not in classes:
            raise BadData(f"{category} is tested but never trained; training has {few(classes)}")
        label = classes.index(category.name)
        # A category tested on one object may hold its frames directly.
        things = folders(category) or [category]
        videos += [
            Video(label, f"{side.name}/{category.name}/{thing.name}", files, test)
            for thing in things
            if (files := image_files(thing))
        ]
    return videos


def _what(start: Path) -> str:
    return (
        f"Get iCubWorld 1.0 (40 objects in 10 categories) from {PAGE}, section Previous "
        f"Releases, and unpack it so that {start}/train/<category>/<object>/ and "
        f"{start}/test/categorization/ exist; the page gives no fixed address or hash, so it "
        "cannot be fetched for you."
    )


def _guess(classes: int, start: Path) -> str:
    return (HELLO + " " if classes == 7 else "") + _what(start)
