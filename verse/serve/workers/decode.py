"""The process that decodes uploaded images: bytes in, pixels out, nothing else.

It can be killed at any moment, and what a decoder prints or wastes stays in it. It imports neither
torch nor a web framework, so that it starts in a moment and is small.

    ready     b"R", once, when it can take requests
    request   ``REQUEST``: bytes of the image and of its name; then name and image
    answer    b"P", ``PIXELS``: height, width of the pixels and of the thumbnail, then both; or
              b"E", ``ERROR``: bytes of the message, then the message
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import struct
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import BinaryIO

import numpy as np
from PIL import Image

from verse import images
from verse.images import RGB, Square
from verse.types import BadImage

REQUEST = struct.Struct("<QI")
PIXELS = struct.Struct("<IIII")
ERROR = struct.Struct("<I")
SIDE = 96  # pixels of a thumbnail's longer side
MEMORY = 2**30  # bytes of address space, beside sixteen for each pixel


@dataclass(frozen=True)
class DecodeTask:
    """What to do with every image: refuse what has more than ``max_pixels``, cut the ``square``
    (None: keep all of it).

    >>> DecodeTask.read(DecodeTask(100, Square(8)).text()) == DecodeTask(100, Square(8))
    True
    """

    max_pixels: int
    square: Square | None = None

    def text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> DecodeTask:
        found = json.loads(text)
        return cls(found["max_pixels"], Square(**found["square"]) if found["square"] else None)

    def pixels(self, image: bytes, name: str) -> tuple[RGB, RGB]:
        """The pixels that the network needs, and those of a thumbnail."""
        pixels = images.rgb(
            image,
            at_least=self.square.at_least if self.square else None,
            formats=images.UPLOADS,
            max_pixels=self.max_pixels,
            name=name,
        )
        height, width, _ = pixels.shape
        scale = min(1.0, SIDE / max(height, width))
        size = max(1, round(width * scale)), max(1, round(height * scale))
        small = np.asarray(Image.fromarray(pixels).resize(size, reducing_gap=1.0))
        return self.square.cut(pixels) if self.square else pixels, small


def parts(task: DecodeTask, image: bytes, name: str) -> Iterator[bytes | memoryview]:
    """What goes back: the pixels and a small copy of them; or why there are none.

    >>> list(parts(DecodeTask(100), b"", "mug.jpg"))[1]
    b'mug.jpg is empty'
    """
    try:
        pixels, small = task.pixels(image, name)
    except (BadImage, MemoryError) as error:
        text = (str(error) or f"{name} needs too much memory to decode").encode()[:2000]
        yield b"E" + ERROR.pack(len(text))
        yield text
        return
    yield b"P" + PIXELS.pack(*pixels.shape[:2], *small.shape[:2])
    yield np.ascontiguousarray(pixels).data.cast("B")
    yield small.tobytes()


def answer_requests(task: DecodeTask, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until there are no more requests."""
    while len(header := requests.read(REQUEST.size)) == REQUEST.size:
        length, named = REQUEST.unpack(header)
        name, image = requests.read(named).decode(), requests.read(length)
        for part in parts(task, image, name):
            answers.write(part)
        answers.flush()


def limit_resources(max_pixels: int) -> None:
    """No more memory than the largest image allowed needs; no file of its memory on a crash."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = MEMORY + 16 * max_pixels
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    logging.disable()
    warnings.simplefilter("ignore")
    Image.init()
    task = DecodeTask.read(sys.argv[1])
    limit_resources(task.max_pixels)
    with os.fdopen(0, "rb") as requests, os.fdopen(1, "wb") as answers:
        answers.write(b"R")
        answers.flush()
        answer_requests(task, requests, answers)


if __name__ == "__main__":
    main()
