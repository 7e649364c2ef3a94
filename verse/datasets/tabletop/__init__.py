"""`tabletop`: objects on tables, filmed by a moving camera, rendered when they are needed.

Belongs here: code that draws these pictures. Does not belong here: what other data sets could
use.

Twelve categories a person would name, each with differing instances (shape, colour, pattern),
filmed in sessions that differ in table, room, light, distance, camera path, clutter, occlusion,
blur and noise. Test videos show instances never trained on, in sessions never trained in.
Frames are a pure function of (seed, size, category, instance, session, frame number): more
frames, sessions or instances extend a data set without changing what was there.

The data set is frozen: its difficulty was set with nearest class mean on pooled features of the
default backbone alone, before any streaming learner saw it. A change to the pictures is a new
VERSION.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from verse.datasets.base import Dataset, DataWarning, Frames, Source
from verse.datasets.tabletop.objects import CATEGORIES
from verse.datasets.tabletop.reel import Reel
from verse.datasets.tabletop.render import VideoRenderer
from verse.datasets.tabletop.scene import TabletopVideo
from verse.paths import cache_directory
from verse.types import BadSetting

VERSION = 1
Image = npt.NDArray[np.uint8]
Progress = Callable[[int, int], None]  # (frames done, frames in all)


def load(
    *,
    frames: int = 16,
    sessions: int = 5,
    instances: int = 6,
    size: int = 96,
    seed: int = 0,
    cache: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """The data set; with `cache`, rendered on the first call and read from disk afterwards.

    The last third of the instances and the last two fifths of the sessions (at least one of
    each) are test. The cache lies in VERSE_CACHE, or the user's cache folder.

    >>> data = load(frames=2, size=32, cache=False)
    >>> len(data.classes), len(data.train), len(data.test), data.train.read(0).shape
    (12, 288, 96, (32, 32, 3))
    """
    _check(frames=(frames, 1), sessions=(sessions, 2), instances=(instances, 2))
    _check(size=(size, 16), seed=(seed, 0))
    old_i, old_s = (
        instances - max(1, round(instances / 3)),
        sessions - max(1, round(0.4 * sessions)),
    )
    train = [(c, i, s) for c in CATEGORIES for i in range(old_i) for s in range(old_s)]
    test = [
        (c, i, s)
        for c in CATEGORIES
        for i in range(old_i, instances)
        for s in range(old_s, sessions)
    ]
    videos = (*train, *test)
    path = (
        cache_directory()
        / "tabletop"
        / f"v{VERSION}-seed{seed}-{size}px-{instances}x{sessions}x{frames}.npy"
    )
    source = RenderedFrames(videos, frames, size, seed, path if cache else None)
    if cache:
        source.prepare(progress)
    classes = tuple(CATEGORIES)
    label = np.repeat([classes.index(c) for c, _, _ in videos], frames)
    video = np.repeat(np.arange(len(videos)), frames)
    every = Frames(label, video, np.tile(np.arange(frames), len(videos)), source)
    n = len(train) * frames
    return Dataset(
        "tabletop",
        classes,
        every.take(np.arange(n)),
        every.take(np.arange(n, len(every))),
        split="unseen instances in unseen sessions",
        video_names={k: f"{c}/{i}-session{s}" for k, (c, i, s) in enumerate(videos)},
    )


@dataclass(frozen=True)
class RenderedFrames(Source):
    """Frames of (category, instance, session) videos, from the reel at `path` or drawn afresh.

    >>> source = RenderedFrames((("mug", 0, 0),), frames=2, size=32, seed=0)
    >>> source.key(1)
    'tabletop v1 seed 0 32 px mug 0 session 0 frame 1'
    """

    videos: tuple[tuple[str, int, int], ...]
    frames: int
    size: int
    seed: int
    path: Path | None = None

    def key(self, i: int) -> str:
        """The parameters that make frame i."""
        category, instance, session = self.videos[i // self.frames]
        return (
            f"tabletop v{VERSION} seed {self.seed} {self.size} px "
            f"{category} {instance} session {session} frame {i % self.frames}"
        )

    def read(self, i: int) -> Image:
        """Frame i; one that is damaged on disk is drawn again."""
        image = self._reel.frame(i) if self._reel is not None else None
        if image is None:
            video, frame = divmod(i, self.frames)
            image = _film(self.seed, self.size, *self.videos[video]).frame(frame)
        return image

    def prepare(self, progress: Progress | None = None) -> None:
        """Render everything to disk unless it is there."""
        if self.path is None or self._reel is not None:
            return
        n = len(self.videos) * self.frames
        try:
            Reel.write(self.path, n, self.size, self._render(progress))
        except OSError as error:
            warnings.warn(
                f"tabletop cannot be kept in {self.path.parent} ({error}), so frames are drawn "
                "each time; set VERSE_CACHE to a folder with space",
                DataWarning,
                stacklevel=3,
            )
        self.__dict__.pop("_reel", None)

    @cached_property
    def _reel(self) -> Reel | None:
        n = len(self.videos) * self.frames
        return None if self.path is None else Reel.open(self.path, n, self.size)

    def _render(self, progress: Progress | None) -> Iterator[Image]:
        def film(video: tuple[str, int, int]) -> Image:
            filmed = _film.__wrapped__(self.seed, self.size, *video)
            return np.stack([filmed.frame(k) for k in range(self.frames)])

        total, done = len(self.videos) * self.frames, 0
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            for images in pool.map(film, self.videos):
                done += self.frames
                if progress is not None:
                    progress(done, total)
                yield images

    def __getstate__(self) -> dict[str, object]:
        """Without the open file: a worker process maps it itself."""
        return {k: v for k, v in self.__dict__.items() if k != "_reel"}


@lru_cache(maxsize=8)
def _film(seed: int, size: int, category: str, instance: int, session: int) -> VideoRenderer:
    spacing = 1.2 / size  # below one pixel at any distance the camera takes
    return VideoRenderer(TabletopVideo.draw(seed, category, instance, session, spacing), size)


def _check(**given: tuple[int, int]) -> None:
    for name, (value, least) in given.items():
        if type(value) is not int or value < least:
            raise BadSetting(f"tabletop: {name} must be a whole number from {least}, not {value!r}")
