"""Rules that hold out a test side, written as short strings for the command line.

=====================  ============================================================
``last:3``             the last 3 videos of each class, sorted by name
``last:25%``           the last quarter of the videos of each class, rounded up
``videos:a,b``         the videos of these names (``*`` matches anything; ``class/name`` too)
``arcs:6:3,6``         each video cut in 6 consecutive arcs; arcs 3 and 6 test; an arc is a video
``fraction:0.2``       the last fifth of each video
``file:split.csv``     a file: CSV with columns ``path,split``, or JSON ``{"test": […]}``
``none``               nothing: every frame is training
=====================  ============================================================
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import numpy.typing as npt

from verse.datasets.base import Dataset, Frames, Ints, join_names, places
from verse.suggestions import find_similar
from verse.types import BadData, BadSetting

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Cut:
    """Frames and, for each, whether it is held out; ``drop`` leaves a frame out altogether."""

    frames: Frames
    classes: tuple[str, ...]
    video_names: Mapping[int, str]
    test: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    drop: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def video_name(self, video: int) -> str:
        return self.video_names.get(video, str(video))


def split_frames(
    name: str, classes: tuple[str, ...], frames: Frames, video_names: Mapping[int, str], rule: str
) -> Dataset:
    """Cut ``frames`` by ``rule`` into a data set; video ids must follow the videos' order."""
    kind, _, argument = rule.partition(":")
    if kind not in RULES:
        near = find_similar(kind, RULES)
        raise BadSetting(
            f"unknown split rule {rule!r}"
            + (f", did you mean {near!r}?" if near else ".")
            + f" Valid rules: {', '.join(FORMS)}"
        )
    cut = _apart(RULES[kind](Cut(frames, classes, video_names), argument))
    keep = ~cut.drop if len(cut.drop) else np.ones(len(cut.frames), dtype=bool)
    return Dataset(
        name,
        classes,
        cut.frames.take(keep & ~cut.test),
        cut.frames.take(keep & cut.test),
        rule,
        cut.video_names,
    )


def validation(dataset: Dataset, rule: str) -> Dataset:
    """A data set made of the training side alone: ``rule`` holds out its validation videos.

    The test frames of ``dataset`` are in neither side, so nothing tuned here has seen them.
    """
    inner = split_frames(dataset.name, dataset.classes, dataset.train, dataset.video_names, rule)
    return replace(inner, split=f"{dataset.split} / validation {rule}")


def _last(cut: Cut, argument: str) -> Cut:
    share = argument.endswith("%")
    form = "last:3 holds out the last 3 videos of each class, last:25% the last quarter of them"
    number = _number(argument.removesuffix("%"), form)
    test = np.zeros(len(cut.frames), dtype=bool)
    for label, name in enumerate(cut.classes):
        rows = cut.frames.labels == label
        videos = np.unique(cut.frames.videos[rows])
        count = -(-len(videos) * number // 100) if share else number
        if len(videos) and len(videos) <= count:
            raise BadData(
                f"class {name!r} has {len(videos)} videos, so holding out {count} leaves "
                "none to train on; hold out fewer, or a part of each (fraction:0.2)"
            )
        test |= np.isin(cut.frames.videos, videos[len(videos) - count :])
    return replace(cut, test=test)


def _videos(cut: Cut, argument: str) -> Cut:
    patterns = [part.strip() for part in argument.split(",") if part.strip()]
    if not patterns:
        raise BadSetting("name the videos to hold out, for example videos:track03,track04")
    label_of = dict(zip(cut.frames.videos.tolist(), cut.frames.labels.tolist(), strict=True))
    names = {
        v: (cut.video_name(v), f"{cut.classes[y]}/{cut.video_name(v)}") for v, y in label_of.items()
    }
    held: set[int] = set()
    for pattern in patterns:
        hit = {v for v, both in names.items() if any(fnmatchcase(n, pattern) for n in both)}
        if not hit:
            known = [short for short, _ in names.values()]
            near = find_similar(pattern, known)
            raise BadSetting(
                f"no video is called {pattern!r}"
                + (f", did you mean {near!r}?" if near else ".")
                + f" There are: {join_names(dict.fromkeys(known))}"
            )
        held |= hit
    return replace(cut, test=np.isin(cut.frames.videos, sorted(held)))


def _arcs(cut: Cut, argument: str) -> Cut:
    form = "arcs:6:3,6 cuts each video in 6 arcs and holds out the third and the sixth"
    parts, _, chosen = argument.partition(":")
    count = _number(parts, form)
    held = {_number(arc, form) for arc in chosen.split(",")}
    if max(held) > count or len(held) >= count:
        raise BadSetting(f"arcs are numbered 1…{count} and one must stay to train on: {form}")
    place, length = places(cut.frames)
    if (length < count).any():
        short = int(np.argmax(length < count))
        raise BadData(
            f"video {cut.video_name(int(cut.frames.videos[short]))!r} has {length[short]}"
            f" frames, too few for {count} arcs"
        )
    # Arcs of equal length; what does not divide goes to the last one.
    piece = np.minimum(place // (length // count), count - 1)
    renumbered = _renumber(cut, piece, "arc")
    return replace(renumbered, test=np.isin(piece + 1, sorted(held)))


def _fraction(cut: Cut, argument: str) -> Cut:
    try:
        share = float(argument)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise BadSetting(
            "fraction:0.2 holds out the last fifth of each video; "
            f"{argument!r} is not a number between 0 and 1"
        )
    place, length = places(cut.frames)
    if (length < 2).any():
        short = int(np.argmax(length < 2))
        raise BadData(
            f"video {cut.video_name(int(cut.frames.videos[short]))!r} has one frame, "
            "which cannot be on both sides; hold out whole videos (last:1)"
        )
    count = np.clip(np.rint(share * length), 1, length - 1)
    return replace(cut, test=place >= length - count)


def _file(cut: Cut, argument: str) -> Cut:
    sides = _split_file(Path(argument))
    names = [cut.frames.name(i).partition("|")[0] for i in range(len(cut.frames))]
    found, used = [], set()
    for name in names:
        parts = name.split("/")
        # The longest listed prefix decides: a frame, else its video, else its class.
        prefixes = ["/".join(parts[:k]) for k in range(len(parts), 0, -1)]
        hit = next((p for p in prefixes if p in sides), None)
        used.add(hit)
        found.append(None if hit is None else sides[hit])
    if unused := [path for path in sides if path not in used]:
        raise BadData(f"{argument} lists what is not in the data set: {join_names(unused)}")
    if "train" in sides.values() and None in found:
        raise BadData(
            f"{argument} says nothing about {names[found.index(None)]}; "
            "list it as train, test or skip"
        )
    return replace(
        cut,
        test=np.array([side == "test" for side in found]),
        drop=np.array([side == "skip" for side in found]),
    )


def _none(cut: Cut, argument: str) -> Cut:
    if argument:
        raise BadSetting("the rule none takes no number or name after it")
    return replace(cut, test=np.zeros(len(cut.frames), dtype=bool))


RULES: dict[str, Callable[[Cut, str], Cut]] = {
    "last": _last,
    "videos": _videos,
    "arcs": _arcs,
    "fraction": _fraction,
    "file": _file,
    "none": _none,
}
FORMS = (
    "last:N",
    "last:P%",
    "videos:NAME,…",
    "arcs:N:I,J",
    "fraction:F",
    "file:PATH.csv|json",
    "none",
)


def _number(text: str, form: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise BadSetting(f"{text!r} is not a whole number from 1; {form}")
    return int(text)


def _split_file(path: Path) -> dict[str, str]:
    """Listed path → train, test or skip."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"the split file {path} cannot be read: {error}") from None
    if path.suffix.lower() == ".json":
        try:
            sides = {
                str(entry): side for side, entries in json.loads(text).items() for entry in entries
            }
        except (ValueError, AttributeError, TypeError):
            raise BadSetting(f'{path} is not JSON like {{"test": ["class/video", …]}}') from None
    else:
        rows = list(csv.DictReader(text.splitlines()))
        if not rows or not {"path", "split"} <= set(rows[0]):
            raise BadSetting(f"{path} needs the columns path,split in its first line")
        sides = {row["path"]: row["split"] for row in rows}
    sides = {entry.strip().strip("/"): str(side).strip() for entry, side in sides.items()}
    if wrong := sorted(set(sides.values()) - {"train", "test", "skip"}):
        raise BadSetting(f"{path}: a side is train, test or skip, not {join_names(wrong)}")
    return sides


def _apart(cut: Cut) -> Cut:
    """Make each stretch of a video that lies on one side a video of its own."""
    videos, side = cut.frames.videos, cut.test.astype(np.int64)
    if len(cut.drop):
        side = side + 2 * cut.drop
    order = np.lexsort((cut.frames.frames, videos))
    turn = np.zeros(len(order), dtype=np.int64)
    turn[1:] = (np.diff(side[order]) != 0) & (np.diff(videos[order]) == 0)
    if not turn.any():
        return cut
    place, _ = places(cut.frames)
    turns = np.cumsum(turn)
    before = turns[np.maximum.accumulate(np.where(place[order] == 0, np.arange(len(order)), 0))]
    piece = np.empty(len(order), dtype=np.int64)
    piece[order] = turns - before  # turns since the video began
    return _renumber(cut, piece, "part")


def _renumber(cut: Cut, piece: Ints, word: str) -> Cut:
    """New video ids for (video, piece) in order, frames counted from 0 in each."""
    pairs, ids = np.unique(np.stack([cut.frames.videos, piece]), axis=1, return_inverse=True)
    cut_up = set(pairs[0][pairs[1] > 0].tolist())
    names = {
        k: cut.video_name(v) + (f" {word} {p + 1}" if v in cut_up else "")
        for k, (v, p) in enumerate(pairs.T.tolist())
    }
    frames = replace(cut.frames, videos=ids.reshape(-1))
    return replace(cut, frames=replace(frames, frames=places(frames)[0]), video_names=names)
