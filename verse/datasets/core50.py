"""CoRe50: 50 objects of 10 categories, filmed in 11 sessions (Lomonaco and Maltoni, CoRL 2017).

On disk ``s1/o1/C_01_01_000.png``: session, object, frame. Objects 1–5 are the first category, 6–10
the second, and so on; the labels here are the categories. Sessions 3, 7 and 10 are the test set.
A video is one object in one session: 15 seconds at 20 frames a second, 128×128 crops. Frames whose
object was lost by the tracker are missing, so a video has 300 frames or a few less and need not
begin with 000.

One frame a second is taken in two ways, which share hardly a frame. ``rate="video"`` begins anew
with each video. ``rate="official"`` takes the test frames of the authors' reduced list: all test
frames in one list (sessions 3, 7, 10, in each the objects as text: o1, o10, o11 … o2, o20 …), of
which every 20th counts, 2,249 in all. There is no such list for training: ``fps`` thins it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from verse.datasets.base import Dataset, Frames, join_names
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
from verse.types import BadData, BadSetting

CATEGORIES = (
    "plug adapter",
    "mobile phone",
    "scissor",
    "light bulb",
    "can",
    "glass",
    "ball",
    "marker",
    "cup",
    "remote control",
)
TEST_SESSIONS = (3, 7, 10)
FPS = 20
RATES = ("video", "official")
EXPECT = Expect(classes=10, train=119_894, test=44_972)
# The source publishes no hash; the size is the official file's.
ARCHIVE = Archive(
    "http://bias.csr.unibo.it/maltoni/download/core50/core50_128x128.zip", size=5_892_103_007
)
FRAME = re.compile(r"C_(\d+)_(\d+)_(\d+)\.png")


def load(
    root: str | Path | None = None,
    fps: int = FPS,
    rate: str = "video",
    download: bool = False,
    progress: Progress | None = None,
    expect: Expect = EXPECT,
) -> Dataset:
    """CoRe50 with its 10 categories; ``fps=20`` is the full rate of the paper, ``fps=1`` common.

    ``rate="official"`` tests on the authors' list of one frame a second, whatever ``fps`` is.
    """
    if rate not in RATES:
        raise BadSetting(f"rate is {' or '.join(RATES)}, not {rate!r}")
    if not 1 <= fps <= FPS or FPS % fps:
        raise BadSetting(f"CoRe50 has {FPS} frames a second; fps is 1, 2, 4, 5, 10 or {FPS}")
    start = choose_folder("core50", root)
    found = find_folder(start, lambda folder: (folder / "s1" / "o1").is_dir())
    if found is None and download:
        fetch_archive(ARCHIVE, start, progress)
        found = find_folder(start, lambda folder: (folder / "s1" / "o1").is_dir())
    if found is None:
        raise missing_error(
            "CoRe50",
            start,
            f"Download {ARCHIVE.url} (5.9 GB) and unpack it there, so "
            f"that {start}/core50_128x128/s1/o1/C_01_01_000.png exists; or ask for it: "
            "verse run core50 --data download=true, or "
            'load("core50", options={"download": True})',
        )
    videos = [
        video
        for session in folders(found)
        if re.fullmatch(r"s\d+", session.name)
        for video in _session(session)
    ]
    present = sorted({video.label for video in videos})
    check_counts("CoRe50", found, expect, [CATEGORIES[k] for k in present], videos, _guess)
    dataset = assemble("core50", found, CATEGORIES, videos, "sessions 3, 7, 10")
    thinned = dataset.thin(every=FPS // fps)
    if rate == "video":
        return thinned
    split = f"{dataset.split}, every {FPS}th frame of their list"
    return replace(thinned, test=dataset.test.take(select_reduced(dataset.test)), split=split)


def select_reduced(test: Frames) -> list[int]:
    """The places of the frames in the authors' reduced list of test frames."""

    def list_place(i: int) -> tuple[int, str, str]:
        session, thing, frame = test.name(i).partition("|")[0].split("/")
        return int(session[1:]), thing, frame

    return sorted(sorted(range(len(test)), key=list_place)[::FPS])


def load_1fps(
    root: str | Path | None = None,
    rate: str = "video",
    download: bool = False,
    progress: Progress | None = None,
    expect: Expect = EXPECT,
) -> Dataset:
    """CoRe50 at one frame a second."""
    return load(root, 1, rate, download, progress, expect)


def _session(session: Path) -> list[Video]:
    number = int(session.name[1:])
    videos = []
    for thing in folders(session):
        if not re.fullmatch(r"o\d+", thing.name) or not 1 <= int(thing.name[1:]) <= 50:
            raise BadData(f"{thing} is not an object of CoRe50; these are o1 … o50")
        files = image_files(thing)
        expected = (number, int(thing.name[1:]))
        strange = [
            f.name
            for f in files
            if not (m := FRAME.fullmatch(f.name)) or (int(m[1]), int(m[2])) != expected
        ]
        if strange:
            raise BadData(
                f"{thing} has {join_names(strange, 2)}, but CoRe50's colour frames there are "
                f"called C_{number:02d}_{expected[1]:02d}_000.png and so on"
            )
        videos.append(
            Video(
                (expected[1] - 1) // 5,
                f"{session.name}/{thing.name}",
                files,
                number in TEST_SESSIONS,
            )
        )
    return videos


def _guess(classes: int, train: int) -> str:
    if classes == len(CATEGORIES) and train < 10_000:
        return "It looks like a thinned copy; use the full one, which is thinned here with fps=1."
    return (
        f"It looks like a broken download: fetch {ARCHIVE.url} again and unpack all 11 "
        "sessions (s1 … s11) with 50 objects each."
    )
