"""Anything a user hands over becomes one RGB array, or a typed error that says what is wrong.

What happens to the awkward cases is part of the contract:

==============================  =======================================================

grey, 1-bit, CMYK, Lab, YCbCr   converted to RGB
alpha (LA, RGBA, palette)       composited on white: hidden pixels often hold black or rubbish
16-bit (files and uint16)       the full range 0…65535 becomes 0…255
EXIF orientation                applied; an unreadable EXIF block counts as none
animation, multi-page           the first frame
float arrays and tensors        must lie in [0, 1]; NaN, infinity and 0…255 floats are refused
decompression bomb              more than ``MAX_PIXELS`` is refused from the header, undecoded
truncated or foreign file       refused; a partly decoded image is never returned
==============================  =======================================================

"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from verse.types import BadImage

RGB: TypeAlias = npt.NDArray[np.uint8]

MAX_PIXELS = 64_000_000
"""Largest image decoded: above every usual camera, below what a small board can hold as RGB."""

UPLOADS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "AVIF", "MPO")
"""File formats that a stranger may send. A closed list: rarely used decoders are where hostile
files do harm, and the text forms of PPM are decoded by Python, seconds for each megabyte."""

FORMATS = (*UPLOADS, "PPM", "JPEG2000")
"""File formats that are read from one's own disk."""

INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}

_ORIENTATION = 0x0112  # the EXIF tag
_FLOAT_SLACK = 1e-5  # resampling may overshoot [0, 1] by rounding
_STRIP = 1_000_000  # pixels composited at once: large images need little room for it

BLANK = 3.0  # grey values of a blank picture differ by less, also with a sensor's noise
NOISE = 0.5  # correlation of neighbouring pixels; photos have 0.8 and more, noise about 0


def rgb(
    image: object,
    *,
    at_least: int | None = None,
    formats: Sequence[str] = FORMATS,
    max_pixels: int | None = None,
    name: str = "the file",
) -> RGB:
    """One image as RGB, height × width × 3, uint8.

    ``image`` is a path, encoded ``bytes``, a PIL image, a numpy array (H×W or H×W×1/3/4) or a
    torch tensor (C×H×W, H×W×C or H×W). The result may share memory with the input; do not write
    to it. With ``at_least``, a large JPEG is decoded directly at 1/2, 1/4 or 1/8 of its size (much
    faster), as long as both sides stay at least that many pixels. Of encoded bytes, ``formats``
    are those to read, ``max_pixels`` the largest size, and ``name`` what errors call them.

    >>> rgb(np.zeros((4, 6), dtype=np.uint8)).shape
    (4, 6, 3)
    >>> rgb(np.full((4, 6, 3), 255.0))
    Traceback (most recent call last):
    ...
    verse.types.BadImage: float pixels must lie in [0, 1], found 255 to 255: divide by 255
    """
    if isinstance(image, np.ndarray):
        return _from_array(image)
    if isinstance(image, str | os.PathLike):
        return _from_path(image, at_least)
    if isinstance(image, bytes | bytearray | memoryview):
        return _from_stream(io.BytesIO(image), name, at_least, formats, max_pixels)
    if isinstance(image, Image.Image):
        return _from_pil(image, "this PIL image")
    torch = sys.modules.get("torch")  # whoever hands over a tensor has imported torch
    if torch is not None and isinstance(image, torch.Tensor):
        return _from_tensor(image)
    raise BadImage(
        f"cannot read {type(image).__name__} as an image: "
        "use a path, bytes, a PIL image, a numpy array or a torch tensor"
    )


def shows_nothing(pixels: npt.NDArray[Any]) -> bool:
    """Is it blank or noise? Neighbouring pixels of a photo are alike, and not all of them are.

    Only arrays [height, width, 3] of bytes are looked at; anything else may show something.

    >>> shows_nothing(np.zeros((8, 8, 3), np.uint8))
    True
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or min(pixels.shape[:2]) < 2:
        return False
    height, width, _ = pixels.shape
    # neighbouring rows in pairs; of a larger picture some pairs say as much as all
    pairs = pixels[: height // 2 * 2].reshape(-1, 2, width, 3)[:: max(1, height // 56)]
    grey = pairs[..., 0].astype(np.float32)  # plane by plane: a tenth of the time of a mean
    grey += pairs[..., 1]
    grey += pairs[..., 2]
    grey -= grey.mean()
    grey /= 3
    variance = np.vdot(grey, grey) / grey.size
    if variance < BLANK**2:
        return True
    below = np.vdot(grey[:, 1], grey[:, 0]) / grey[:, 0].size
    right = np.vdot(grey[..., 1:], grey[..., :-1]) / grey[..., 1:].size
    return bool((below + right) / 2 < NOISE * variance)


@dataclass(frozen=True)
class Square:
    """A square of ``size`` pixels cut from an image.

    It keeps the share ``crop`` of the short side, or with ``fit="stretch"`` squeezes the whole
    image into the square; ``interpolation`` is how pixels are resized.

    Parameters
    ----------
    size
        Side of the square in pixels.
    crop
        Share of the short side that is kept.
    interpolation
        How pixels are resized.
    fit
        "crop", or "stretch": the whole image, squeezed.

    >>> Square(224).cut(np.zeros((100, 300, 3), np.uint8)).shape
    (224, 224, 3)
    """

    size: int
    crop: float = 1.0
    interpolation: str = "bicubic"
    fit: str = "crop"

    @property
    def at_least(self) -> int:
        """A reduced JPEG must still cover the crop with at least ``size`` pixels."""
        return round(self.size / self.crop)

    def cut(self, pixels: RGB) -> RGB:
        """The square of an RGB image."""
        height, width, _ = pixels.shape
        if height == width == self.size and self.crop == 1.0:
            return pixels
        high, wide = height * self.crop, width * self.crop
        if self.fit == "crop":
            high = wide = min(high, wide)
        left, top = (width - wide) / 2, (height - high) / 2
        # resizing straight from a box: an extreme aspect ratio never makes a huge middle image
        square = Image.fromarray(pixels).resize(
            (self.size, self.size),
            INTERPOLATIONS[self.interpolation],
            box=(left, top, left + wide, top + high),
            reducing_gap=2.0,  # large images are first averaged down to twice the size or more
        )
        return np.asarray(square)


def _from_path(path: str | os.PathLike[str], at_least: int | None) -> RGB:
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise BadImage(f"{name} is a directory: name one image file")
        if not stat.S_ISREG(mode):  # a pipe would block for ever
            raise BadImage(f"{name} is not a regular file")
        with open(name, "rb") as stream:
            return _from_stream(stream, name, at_least)
    except FileNotFoundError:
        raise BadImage(f"no such file: {name}") from None
    except BadImage:
        raise
    except (OSError, ValueError) as error:  # permissions; a NUL in the name
        raise BadImage(f"cannot open {name!r}: {error}") from error


def _from_stream(
    stream: IO[bytes],
    name: str,
    at_least: int | None,
    formats: Sequence[str] = FORMATS,
    max_pixels: int | None = None,
) -> RGB:
    with _open(stream, name, formats) as image:
        _check_size(image.size, name, max_pixels)
        if at_least is not None:
            image.draft("RGB" if image.mode == "RGB" else None, (at_least, at_least))
        return _from_pil(image, name)


def _open(stream: IO[bytes], name: str, formats: Sequence[str]) -> Image.Image:
    """Read the header only. ``Image.open`` would warn about large images; we refuse them."""
    prefix = stream.read(16)
    if not prefix:
        raise BadImage(f"{name} is empty")
    Image.preinit()
    for known in formats:
        if known not in Image.OPEN:
            Image.init()
        if known not in Image.OPEN:
            continue  # this build of Pillow lacks the decoder
        factory, accept = Image.OPEN[known]
        if accept is not None and accept(prefix) is not True:
            continue
        stream.seek(0)
        try:
            return factory(stream, "")
        except SyntaxError:
            continue  # "not mine" in Pillow's plugin protocol
        except Exception as error:  # a damaged header may raise anything
            raise BadImage(f"{name} has a damaged {known} header: {error}") from error
    raise BadImage(f"{name} is not a supported image: use {', '.join(formats)}")


def _check_size(size: tuple[int, int], name: str, max_pixels: int | None = None) -> None:
    (width, height), most = size, MAX_PIXELS if max_pixels is None else max_pixels
    if width < 1 or height < 1:
        raise BadImage(f"{name} has no pixels ({width}×{height})")
    if width * height > most:
        raise BadImage(
            f"{name} has {width}×{height} pixels, above the limit of {most}: scale it down"
        )


def _from_pil(image: Image.Image, name: str) -> RGB:
    _check_size(image.size, name)
    try:
        image.load()
        try:
            orientation = image.getexif().get(_ORIENTATION, 1)
        except Exception:  # a damaged EXIF block does not spoil the picture
            orientation = 1
        if orientation in range(2, 9):
            image = ImageOps.exif_transpose(image)
        if image.mode == "F" or image.mode.startswith("I;16"):
            return _from_array(np.asarray(image))
        if image.mode == "I":  # how Pillow holds some 16-bit files
            wide = np.asarray(image)
            if wide.min() < 0 or wide.max() > 65535:
                raise BadImage(f"{name} has 32-bit pixels: convert it to 8 or 16 bits")
            return _from_array(wide.astype(np.uint16))
        if image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info:
            return _on_white(np.asarray(image if image.mode == "RGBA" else image.convert("RGBA")))
        return np.asarray(image if image.mode == "RGB" else image.convert("RGB"))
    except BadImage:
        raise
    except Exception as error:  # decoders raise OSError, ValueError, zlib.error, struct.error …
        raise BadImage(f"{name} cannot be decoded: {error}") from error


def _from_tensor(image: Any) -> RGB:
    image = image.detach().cpu()
    if image.is_floating_point():
        image = image.float()  # numpy has no bfloat16
    array: npt.NDArray[Any] = image.numpy()
    # channels first is torch's convention and wins where both readings fit
    if array.ndim == 3 and array.shape[0] in (1, 3, 4):
        array = array.transpose(1, 2, 0)
    return _from_array(array)


def _from_array(array: npt.NDArray[Any]) -> RGB:
    if array.ndim not in (2, 3):
        raise BadImage(f"an image has 2 or 3 dimensions, not {array.ndim}: hand over one at a time")
    if 0 in array.shape:
        raise BadImage(f"the image has no pixels (shape {array.shape})")
    if array.ndim == 2:
        array = array[:, :, None]
    if array.shape[2] not in (1, 3, 4):
        hint = ": use array.transpose(1, 2, 0)" if array.shape[0] in (1, 3, 4) else ""
        raise BadImage(f"an image has 1, 3 or 4 channels last, not shape {array.shape}{hint}")
    _check_size((array.shape[1], array.shape[0]), "the image")
    pixels = _to_bytes(array)
    if pixels.shape[2] == 4:
        return _on_white(pixels)
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    return np.ascontiguousarray(pixels)


def _to_bytes(array: npt.NDArray[Any]) -> RGB:
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if not np.issubdtype(array.dtype, np.number) or np.iscomplexobj(array):
        raise BadImage(f"pixels of type {array.dtype}: use uint8, or floats in [0, 1]")
    low, high = array.min(), array.max()
    if np.issubdtype(array.dtype, np.floating):
        if not (np.isfinite(low) and np.isfinite(high)):
            raise BadImage("the image contains NaN or infinite pixels")
        if low < -_FLOAT_SLACK or high > 1 + _FLOAT_SLACK:
            raise BadImage(
                f"float pixels must lie in [0, 1], found {low:g} to {high:g}: divide by 255"
            )
        return (array.clip(0, 1) * 255 + 0.5).astype(np.uint8)
    if array.dtype == np.uint16:
        return (array // 257).astype(np.uint8)
    if low < 0 or high > 255:
        raise BadImage(f"integer pixels must lie in 0…255, found {low} to {high}")
    return array.astype(np.uint8)


def _on_white(rgba: RGB) -> RGB:
    height, width, _ = rgba.shape
    white = np.empty((height, width, 3), np.uint8)
    rows = max(1, _STRIP // width)
    for top in range(0, height, rows):
        strip = rgba[top : top + rows].astype(np.uint16)
        colour, alpha = strip[:, :, :3], strip[:, :, 3:]
        white[top : top + rows] = (colour * alpha + 255 * (255 - alpha) + 127) // 255
    return white
