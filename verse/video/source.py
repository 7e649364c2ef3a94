"""The frames of a film file, of a camera of this machine, or of a network camera."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from verse.datasets.files import FILMS
from verse.datasets.films import pixels
from verse.extras import OptionalImport
from verse.types import BadData, BadSetting

# Platform → (FFmpeg's input device, the name of camera n).
CAMERAS = {
    "linux": ("v4l2", "/dev/video{}"),
    "darwin": ("avfoundation", "{}:none"),
    "win32": ("vfwcap", "{}"),
}


@dataclass(frozen=True, slots=True)
class Shot:
    """One frame: seconds since the first one, and its RGB pixels.

    Parameters
    ----------
    time
        Seconds since the first frame.
    image
        RGB pixels [height, width, 3].

    >>> Shot(0.5, np.zeros((4, 4, 3), np.uint8)).time
    0.5
    """

    time: float
    image: npt.NDArray[np.uint8]


def is_video(source: str) -> bool:
    """Is it a film, a camera or a network camera, by its name?

    >>> [is_video(source) for source in ("mug.mp4", "camera:0", "rtsp://10.0.0.7/live", "a.png")]
    [True, True, True, False]
    """
    return is_live(source) or Path(source).suffix.lower() in FILMS


def is_live(source: str) -> bool:
    """Does it go on without end?

    >>> is_live("camera:1"), is_live("mug.mp4")
    (True, False)
    """
    return re.fullmatch(r"camera:\d+|[a-z]+://.+", source) is not None


def shots(source: str, *, every: float = 0.0, seconds: float | None = None) -> Iterator[Shot]:
    """The frames in order of time, at most one in ``every`` seconds, until ``seconds``.

    Each is decoded once and kept nowhere; a damaged frame ends a film with ``BadData``.
    """
    if every < 0 or (seconds is not None and seconds <= 0):
        raise BadSetting("every and seconds are lengths of time in seconds, above 0")
    with open_video(source) as container:
        first: float | None = None
        taken = -1
        try:
            for frame in container.decode(video=0):
                if frame.time is None:
                    continue
                first = frame.time if first is None else first
                time = frame.time - first
                if seconds is not None and time >= seconds:
                    return
                # the first frame of each stretch of ``every`` seconds: rounding never adds up
                stretch = math.floor(time / every + 1e-6) if every else taken + 1
                if stretch > taken:
                    taken = stretch
                    yield Shot(time, pixels(frame))
        except (OSError, ValueError) as error:
            raise BadData(f"{source} cannot be decoded any further: {error}") from error
    if first is None:
        raise BadData(f"{source} has no frames")


def open_video(source: str, *, timeout: float | None = None) -> Any:
    """PyAV's container of a film, camera or stream that has a video track.

    ``timeout``: seconds without data until a network camera counts as gone (``OSError``).
    """
    with OptionalImport():
        import av
    try:
        if source.startswith("camera:"):
            if sys.platform not in CAMERAS:
                raise BadSetting(f"no way to a camera on {sys.platform}: use its address (rtsp://)")
            device, name = CAMERAS[sys.platform]
            container = av.open(name.format(source.removeprefix("camera:")), format=device)
        else:
            container = av.open(source, timeout=timeout, options=_options(source))
    except (OSError, ValueError) as error:  # PyAV's errors are both, by kind
        if isinstance(error, BadSetting):
            raise
        hint = ": is one connected, and may you read it?" if source.startswith("camera:") else ""
        raise BadData(f"{source} cannot be opened as a video: {error}{hint}") from None
    if not container.streams.video:
        container.close()
        raise BadData(f"{source} has no video track")
    return container


def _options(source: str) -> dict[str, str]:
    # over UDP a lossy network tears frames; TCP costs little delay
    return {"rtsp_transport": "tcp"} if source.startswith("rtsp") else {}
