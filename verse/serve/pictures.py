"""An uploaded image once it is decoded, and the frames that were asked about lately."""

from __future__ import annotations

import io
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image
from torch import Tensor

from verse.serve.errors import NotFound
from verse.serve.limits import Quota

FRAME_SECONDS = 60.0
FRAME_BYTES = 32 * 2**20
FRAME_BYTES_PER_ADDRESS = 8 * 2**20


@dataclass(frozen=True)
class Picture:
    """``inputs`` is what G takes, ``small`` the pixels of a thumbnail, ``encoded`` the file."""

    inputs: npt.NDArray[np.generic]
    small: npt.NDArray[np.uint8]
    encoded: bytes


@dataclass(frozen=True)
class AnsweredFrame:
    """A picture that was asked about: its feature ``z`` is there already."""

    z: Tensor
    small: npt.NDArray[np.uint8]
    encoded: bytes

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return self.z.numel() * self.z.element_size() + self.small.nbytes + len(self.encoded)


def thumbnail(small: npt.NDArray[np.uint8]) -> bytes:
    """A small JPEG, drawn anew: nothing of the uploaded file itself is ever handed out.

    >>> thumbnail(np.zeros((64, 96, 3), np.uint8))[:2]
    b'\\xff\\xd8'
    """
    file = io.BytesIO()
    Image.fromarray(small).save(file, "JPEG", quality=70)
    return file.getvalue()


class AnsweredFrames:
    """Frames asked about in the last minute, so that a correction needs no second upload.

    The oldest go first when they are too many: in all, or of one address. The event loop's thread
    only.

    >>> import torch
    >>> frames = AnsweredFrames()
    >>> frame = AnsweredFrame(torch.zeros(4), np.zeros((2, 2, 3), np.uint8), b"")
    >>> frames.get(frames.add("10.0.0.1", frame)) is frame
    True
    """

    def __init__(self, *, total: int = FRAME_BYTES, share: int = FRAME_BYTES_PER_ADDRESS) -> None:
        self._used = Quota(total, share)
        self._kept: OrderedDict[str, tuple[str, float, AnsweredFrame]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def bytes(self) -> int:
        """Bytes of all frames that are kept."""
        return self._used.used

    def add(self, address: str, frame: AnsweredFrame) -> str:
        """Keep a frame; returns its id."""
        name, size = secrets.token_urlsafe(12), frame.size
        self._drop_old()
        if size > self._used.share:
            return name  # asked for later, it is not kept any longer
        while not self._used.take(address, size):
            own = self._used.of(address) + size > self._used.share
            self._drop(next(i for i, kept in self._kept.items() if not own or kept[0] == address))
        self._kept[name] = (address, time.monotonic() + FRAME_SECONDS, frame)
        return name

    def get(self, name: str) -> AnsweredFrame:
        self._drop_old()
        if name not in self._kept:
            raise NotFound(f"frame {name[:40]!r} is not kept any longer: send the image instead")
        return self._kept[name][2]

    def _drop_old(self) -> None:
        now = time.monotonic()
        while self._kept and next(iter(self._kept.values()))[1] < now:
            self._drop(next(iter(self._kept)))

    def _drop(self, name: str) -> None:
        address, _, frame = self._kept.pop(name)
        self._used.give(address, frame.size)
