"""ImageNet100: 100 classes of ImageNet-1K (ILSVRC 2012); its validation images are the test set.

The list of classes of the paper (127,778 training images) was not published, and lists in use
differ. Here the list is pinned: a file you give, or the 100 folders of a copy that has just 100,
or else the first 100 of the sorted 1,000 WordNet ids after a shuffle with ``seed`` (0). The
data set's ``split`` names the list by its hash, which shows whether two runs can be compared.

On disk ``train/n01440764/*.JPEG`` and either ``val/n01440764/*.JPEG`` or the flat official
``val/ILSVRC2012_val_00000001.JPEG`` beside the labels (the development kit, the CSV of Kaggle, or
a list of 50,000 ids). Each image counts as one video.
"""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path

import numpy as np

from verse.datasets.base import Dataset, DataWarning, join_names
from verse.datasets.imagenet_labels import flat_labels
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
from verse.types import BadData

EXPECT = Expect(classes=100, train=127_778, test=5_000)
FEWEST, MOST = 732, 1_300
"""Training images of the smallest and the largest class of ImageNet-1K."""


def load(
    root: str | Path | None = None,
    classes: str | Path | None = None,
    seed: int = 0,
    expect: Expect | None = None,
) -> Dataset:
    """ImageNet100; ``classes`` is a file with one WordNet id a line, else ``seed`` picks them."""
    start = choose_folder("imagenet100", root)
    found = find_folder(
        start,
        lambda folder: (
            any(f.name[:1] == "n" for f in folders(folder / "train")) and (folder / "val").is_dir()
        ),
    )
    if found is None:
        raise missing_error(
            "ImageNet-1K",
            start,
            "It may not be passed on, so it cannot be fetched for "
            "you: register at https://image-net.org, download ILSVRC2012_img_train.tar, "
            "ILSVRC2012_img_val.tar and ILSVRC2012_devkit_t12.tar.gz, and unpack them so "
            f"that {start}/train/n01440764/*.JPEG, {start}/val/*.JPEG and "
            f"{start}/ILSVRC2012_devkit_t12/ exist",
        )
    present = sorted(folder.name for folder in folders(found / "train"))
    chosen = _read_list(Path(classes), present) if classes else pick(present, seed)
    videos = [
        Video(y, f"train/{file.name}", [file], False)
        for y, wnid in enumerate(chosen)
        for file in image_files(found / "train" / wnid)
    ]
    videos += _test(found, chosen)
    _whole(found, chosen, videos, expect)
    digest = hashlib.sha256("\n".join(chosen).encode()).hexdigest()[:12]
    return assemble("imagenet100", found, chosen, videos, f"validation images, classes {digest}")


def pick(present: list[str], seed: int) -> list[str]:
    """100 ids, sorted: all of a copy that has 100, else a seeded choice of the sorted 1,000."""
    if len(present) == 100:
        return present
    if len(present) != 1000:
        raise BadData(
            f"the training folder has {len(present)} classes; it needs the 1,000 of "
            "ImageNet-1K, or just the 100 wanted, or a file with the list of classes"
        )
    bits = np.random.PCG64(np.random.SeedSequence(seed))  # raw bits: the list is for ever
    order = np.argsort(bits.random_raw(len(present)), kind="stable")
    return sorted(present[k] for k in order[:100])


def _read_list(path: Path, present: list[str]) -> list[str]:
    try:
        chosen = sorted(
            {
                line.split()[0]
                for line in path.read_text("utf-8").splitlines()
                if line.strip() and not line.startswith("#")
            }
        )
    except (OSError, UnicodeDecodeError) as error:
        raise BadData(f"the list of classes {path} cannot be read: {error}") from None
    if absent := [wnid for wnid in chosen if wnid not in set(present)]:
        raise BadData(
            f"{path} names classes that are not in the training folder: {join_names(absent)}"
        )
    return chosen


def _test(found: Path, chosen: list[str]) -> list[Video]:
    label = {wnid: y for y, wnid in enumerate(chosen)}
    if folders(found / "val"):
        files = [
            (file, wnid)
            for wnid in chosen
            if (found / "val" / wnid).is_dir()
            for file in image_files(found / "val" / wnid)
        ]
    else:
        truth = flat_labels(found)
        flat = image_files(found / "val")
        if unknown := [file.name for file in flat if file.stem not in truth]:
            raise BadData(f"the labels do not cover {join_names(unknown)} of {found / 'val'}")
        files = [(file, truth[file.stem]) for file in flat]
    return [
        Video(label[wnid], f"val/{file.name}", [file], True)
        for file, wnid in files
        if wnid in label
    ]


def _whole(found: Path, chosen: list[str], videos: list[Video], expect: Expect | None) -> None:
    """Counts that hold for every list of classes; the paper's own total can only be a warning."""
    train = np.bincount([v.label for v in videos if not v.test], minlength=len(chosen))
    bounds = Expect(EXPECT.classes, None, EXPECT.test) if expect is None else expect
    check_counts(
        "ImageNet100",
        found,
        bounds,
        chosen,
        videos,
        lambda *_: "Each class has 50 validation images; unpack the archives again.",
    )
    if expect is not None:
        return
    if (short := (train < FEWEST) | (train > MOST)).any():
        y = int(np.argmax(short))
        raise BadData(
            f"{found} is not a whole copy: {chosen[y]} has {train[y]} training images, "
            f"but classes of ImageNet-1K have {FEWEST} to {MOST:,}; unpack it again"
        )
    if train.sum() != EXPECT.train:
        warnings.warn(
            f"{train.sum():,} training images; the paper's list of classes, which is not "
            f"public, has {EXPECT.train:,}: results are not comparable class by class",
            DataWarning,
            stacklevel=3,
        )
