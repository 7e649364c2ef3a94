"""What a data set is: frames read lazily, each with its class, its video and its place in it.

A :class:`Frames` is one side (train or test) as parallel arrays over a :class:`Source` that
knows how to read; a :class:`Dataset` is two of them that share their classes.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from verse.types import BadData, BadImage, BadSetting

Ints = npt.NDArray[np.int64]
Image = npt.NDArray[np.uint8]


class DataWarning(UserWarning):
    """The data set can be used, but something about it deserves a look."""


class Source(ABC):
    """Where the pixels come from: files, films, a renderer. Frames are numbered from 0."""

    @abstractmethod
    def read(self, i: int) -> Image:
        """Frame ``i`` as an RGB array [height, width, 3]; raises ``BadImage``."""

    @abstractmethod
    def key(self, i: int) -> str:
        """An identity of frame ``i`` on this machine; it must change when the content does."""

    def name(self, i: int) -> str:
        """The identity of frame ``i`` on any machine (the same copy elsewhere: the same name)."""
        return self.key(i)


@dataclass(frozen=True, eq=False)
class Frames:
    """One side of a data set: parallel arrays of equal length, pixels read on demand.

    Parameters
    ----------
    labels
        Class index into ``Dataset.classes`` of each frame.
    videos
        Its video (instance), unique across the data set.
    frames
        Its position in the video.
    source
        What reads the pixels.
    index
        Its number in ``source``; left out: 0, 1, 2, …

    >>> class Grey(Source):
    ...     def read(self, i):
    ...         return np.full((4, 4, 3), i, np.uint8)
    ...     def key(self, i):
    ...         return f"grey {i}"
    >>> frames = Frames([0, 0, 1], [0, 0, 1], [0, 1, 0], Grey())
    >>> len(frames.take([2])), frames.take([2]).key(0), int(frames.read(1).max())
    (1, 'grey 2', 1)
    """

    labels: Ints
    """Class index into ``Dataset.classes``."""
    videos: Ints
    """Video (instance) id, unique across the data set."""
    frames: Ints
    """Position in its video."""
    source: Source
    index: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Number of each frame in ``source``; left out: 0, 1, 2, …"""

    def __post_init__(self) -> None:
        n = len(self.labels)
        index = self.index if len(self.index) or not n else np.arange(n)
        for name, values in (
            ("labels", self.labels),
            ("videos", self.videos),
            ("frames", self.frames),
            ("index", index),
        ):
            array = np.array(values, dtype=np.int64)
            if array.shape != (n,):
                raise BadData(f"{name} has shape {array.shape} but there are {n} labels")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Frames: {len(self):,} in {len(np.unique(self.videos)):,} videos>"

    def read(self, i: int) -> Image:
        """Frame ``i`` as RGB [height, width, 3] uint8; raises ``BadImage``."""
        return self.source.read(int(self.index[i]))

    def key(self, i: int) -> str:
        """The identity of frame ``i`` on this machine, for caches."""
        return self.source.key(int(self.index[i]))

    def name(self, i: int) -> str:
        """The identity of frame ``i`` on any machine, for records of runs."""
        return self.source.name(int(self.index[i]))

    def take(self, indices: npt.ArrayLike) -> Frames:
        """These frames only, in this order."""
        at = np.asarray(indices)
        at = np.flatnonzero(at) if at.dtype == np.bool_ else at.astype(np.int64)
        return replace(
            self,
            labels=self.labels[at],
            videos=self.videos[at],
            frames=self.frames[at],
            index=self.index[at],
        )

    def thin(self, every: int = 1, keep: int | None = None) -> Frames:
        """Every ``every``-th frame of each video, or ``keep`` frames spread evenly over it.

        The first frame of a video is always kept; a video shorter than ``keep`` stays whole.
        """
        if every < 1 or (keep is not None and keep < 1):
            raise BadSetting("every and keep count frames: they are whole numbers from 1")
        if every > 1 and keep is not None:
            raise BadSetting("give every (each n-th frame) or keep (so many a video), not both")
        if every == 1 and keep is None:
            return self
        place, length = places(self)
        if keep is None:
            return self.take(place % every == 0)
        few_of = np.minimum(keep, length)
        nearest = -(-place * few_of // length)  # the j whose spread place j·length/few is ≥ place
        return self.take((nearest < few_of) & (nearest * length // few_of == place))


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test frames that share their classes; checked when it is made.

    Parameters
    ----------
    name
        Of the data set.
    classes
        Their names; labels are places in this list.
    train, test
        The two sides.
    split
        The rule that made them, in the words of the command line.
    video_names
        Video → name, for messages.
    allow_untested
        Accept classes without a test frame.

    >>> import verse.datasets.base as base
    >>> class Black(Source):
    ...     def read(self, i):
    ...         return np.zeros((4, 4, 3), np.uint8)
    ...     def key(self, i):
    ...         return f"black {i}"
    >>> train, test = Frames([0, 1], [0, 1], [0, 0], Black()), Frames([1], [2], [0], Black())
    >>> len(Dataset("black", ("cup", "mug"), train, test, allow_untested=True).train)
    2
    """

    name: str
    classes: tuple[str, ...]
    train: Frames
    test: Frames
    split: str = ""
    """The rule that made the two sides, in the words of the command line."""
    video_names: Mapping[int, str] = field(default_factory=dict)
    allow_untested: bool = field(default=False, repr=False)
    """A class without test frames passes without a warning."""

    def __post_init__(self) -> None:
        check_dataset(self)

    def __repr__(self) -> str:
        return (
            f"<Dataset {self.name}: {len(self.classes)} classes, {len(self.train):,} training "
            f"and {len(self.test):,} test frames>"
        )

    def thin(self, every: int = 1, keep: int | None = None) -> Dataset:
        """Both sides with fewer frames of each video; see :meth:`Frames.thin`."""
        return replace(self, train=self.train.thin(every, keep), test=self.test.thin(every, keep))

    def fingerprint(self) -> str:
        """A hash of classes, split and frames: the same for the same copy on any machine."""
        digest = hashlib.sha256("\0".join(self.classes).encode())
        for side in (self.train, self.test):
            for array in (side.labels, side.videos, side.frames):
                digest.update(array.astype("<i8").tobytes() + b"|")
            for i in range(len(side)):
                digest.update(side.name(i).encode() + b"\0")
        return digest.hexdigest()


def places(frames: Frames) -> tuple[Ints, Ints]:
    """For every frame: its rank in time inside its video, and how many frames that video has."""
    n = len(frames)
    order = np.lexsort((frames.frames, frames.videos))
    first = np.ones(n, dtype=bool)
    first[1:] = np.diff(frames.videos[order]) != 0
    start = np.flatnonzero(first)
    group = np.cumsum(first) - 1
    place, length = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    place[order] = np.arange(n) - start[group]
    length[order] = np.diff(np.append(start, n))[group]
    return place, length


def check_dataset(dataset: Dataset) -> None:
    """Refuse a data set that cannot be learned and tested; warn of a class without test frames."""
    name, classes = dataset.name, dataset.classes
    if len(set(classes)) != len(classes):
        raise BadData(f"{name}: two classes have the same name")
    if not len(dataset.train):
        raise BadData(f"{name}: there are no training frames")
    for side in (dataset.train, dataset.test):
        if len(side) and not 0 <= side.labels.min() <= side.labels.max() < len(classes):
            raise BadData(f"{name}: labels must lie in 0…{len(classes) - 1}")
    both = np.intersect1d(dataset.train.videos, dataset.test.videos)
    if len(both):
        raise BadData(f"{name}: video {both[0]} is in training and in test; number them apart")
    trained, tested = _present(dataset.train, classes), _present(dataset.test, classes)
    untrained = [c for c, a, b in zip(classes, trained, tested, strict=True) if b and not a]
    if untrained:
        raise BadData(
            f"{name}: test has classes that training never shows ({join_names(untrained)}), so "
            "every answer on them would be wrong; leave them out, or hold out less"
        )
    empty = [c for c, a in zip(classes, trained, strict=True) if not a]
    if empty:
        raise BadData(f"{name}: no frames for {join_names(empty)}; add images or remove the class")
    untested = [c for c, b in zip(classes, tested, strict=True) if not b]
    if untested and len(dataset.test) and not dataset.allow_untested:
        warnings.warn(
            f"{name}: no test frames for {join_names(untested)}", DataWarning, stacklevel=4
        )


def _present(side: Frames, classes: Sequence[str]) -> npt.NDArray[np.bool_]:
    return np.bincount(side.labels, minlength=len(classes)) > 0


def join_names(names: Iterable[object], most: int = 5) -> str:
    """A list for a message: the first few and how many more."""
    items = [str(name) for name in names]
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def unreadable(frames: Frames, indices: Iterable[int] | None = None) -> dict[int, str]:
    """Which frames cannot be read, and why; the caller decides to skip or to refuse."""
    reasons: dict[int, str] = {}
    for i in range(len(frames)) if indices is None else indices:
        try:
            frames.read(i)
        except BadImage as error:
            reasons[i] = str(error)
    return reasons
