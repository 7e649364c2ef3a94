"""Uploaded images: checked by their header before anything is decoded, and made small."""

from __future__ import annotations

import io

from PIL import Image

from verse import images
from verse.types import BadImage

SIDE = 96  # pixels of a thumbnail's longer side
MAX_PIXELS = 24_000_000


def check(image: bytes, max_pixels: int = MAX_PIXELS) -> None:
    """Refuse what is no image, or one that is too large, from its header."""
    width, height = images.size(image)
    if width * height > max_pixels:
        raise BadImage(
            f"the image has {width}×{height} pixels, above the limit of {max_pixels}: scale it down"
        )


def thumbnail(image: bytes) -> bytes:
    """A small JPEG, drawn anew: nothing of the uploaded file itself is ever handed out.

    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (300, 200)).save(file, "PNG")
    >>> Image.open(io.BytesIO(thumbnail(file.getvalue()))).size
    (96, 64)
    """
    small = Image.fromarray(images.rgb(image, at_least=SIDE))
    small.thumbnail((SIDE, SIDE))
    file = io.BytesIO()
    small.save(file, "JPEG", quality=70)
    return file.getvalue()
