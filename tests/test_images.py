from __future__ import annotations

import contextlib
import io
import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from verse import images
from verse.images import rgb
from verse.types import BadImage

H, W = 6, 10
rng = np.random.default_rng(0)
PIXELS = rng.integers(0, 256, (H, W, 3), dtype=np.uint8)


def encode(image: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    "form", ["str", "path", "bytes", "bytearray", "pil", "array", "chw", "hwc"]
)
def test_every_form_gives_the_same_pixels(form: str, tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    file.write_bytes(encode(Image.fromarray(PIXELS), "PNG"))
    tensor = torch.from_numpy(PIXELS.copy())
    given_forms = {
        "str": str(file),
        "path": file,
        "bytes": file.read_bytes(),
        "bytearray": bytearray(file.read_bytes()),
        "pil": Image.fromarray(PIXELS),
        "array": PIXELS,
        "chw": tensor.permute(2, 0, 1),
        "hwc": tensor,
    }
    out = rgb(given_forms[form])
    assert out.dtype == np.uint8
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, PIXELS)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats(dtype: type) -> None:
    out = rgb((PIXELS / 255).astype(dtype))
    assert np.abs(out.astype(int) - PIXELS).max() <= (1 if dtype is np.float16 else 0)


def test_float_tensors() -> None:
    chw = torch.from_numpy(PIXELS.copy()).permute(2, 0, 1) / 255
    np.testing.assert_array_equal(rgb(chw), PIXELS)
    assert np.abs(rgb(chw.bfloat16()).astype(int) - PIXELS).max() <= 1
    np.testing.assert_array_equal(rgb(chw.requires_grad_()), PIXELS)


def test_grey() -> None:
    grey = PIXELS[:, :, 0]
    expected = np.stack([grey] * 3, axis=2)
    for form in (grey, grey[:, :, None], torch.from_numpy(grey.copy()), Image.fromarray(grey)):
        np.testing.assert_array_equal(rgb(form), expected)
    np.testing.assert_array_equal(rgb(grey > 127), expected // 128 * 255)


def test_integers() -> None:
    np.testing.assert_array_equal(rgb(PIXELS.astype(np.int64)), PIXELS)
    with pytest.raises(BadImage, match="0…255"):
        rgb(PIXELS.astype(np.int64) * 2)


def test_alpha_is_composited_on_white() -> None:
    rgba = np.dstack([PIXELS, np.zeros((H, W), np.uint8)])
    rgba[0, 0, 3] = 255
    for form in (rgba, rgba / 255, Image.fromarray(rgba), encode(Image.fromarray(rgba), "PNG")):
        out = rgb(form)
        np.testing.assert_array_equal(out[0, 0], PIXELS[0, 0])
        assert (out[1:] == 255).all()
    la = Image.fromarray(rgba).convert("LA")
    assert (rgb(la)[1:] == 255).all()


def test_palette() -> None:
    paletted = Image.fromarray(PIXELS).quantize(8)
    np.testing.assert_array_equal(rgb(encode(paletted, "PNG")), np.asarray(paletted.convert("RGB")))
    clear = encode(paletted, "PNG", transparency=bytes([0] * 8))
    assert (rgb(clear) == 255).all()


def test_16_bit() -> None:
    deep = PIXELS[:, :, 0].astype(np.uint16) * 257
    expected = np.stack([PIXELS[:, :, 0]] * 3, axis=2)
    np.testing.assert_array_equal(rgb(deep), expected)
    np.testing.assert_array_equal(rgb(encode(Image.fromarray(deep), "PNG")), expected)
    np.testing.assert_array_equal(rgb(encode(Image.fromarray(deep), "TIFF")), expected)
    np.testing.assert_array_equal(rgb(Image.fromarray(deep.astype(np.int32))), expected)
    with pytest.raises(BadImage, match="32-bit"):
        rgb(Image.fromarray(deep.astype(np.int32) * 9))


@pytest.mark.parametrize("mode", ["1", "CMYK", "YCbCr", "LAB", "HSV"])
def test_other_colour_spaces(mode: str) -> None:
    image = Image.new("RGB", (W, H), (200, 40, 30)).convert(mode)
    out = rgb(image)
    np.testing.assert_array_equal(out, np.asarray(image.convert("RGB")))


def test_cmyk_jpeg() -> None:
    image = Image.new("RGB", (32, 32), (200, 40, 30)).convert("CMYK")
    assert np.abs(rgb(encode(image, "JPEG"))[0, 0].astype(int) - (200, 40, 30)).max() < 12


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_applied(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    turned = rgb(encode(Image.fromarray(PIXELS), "PNG", exif=exif.tobytes()))
    expected = {
        1: PIXELS,
        2: PIXELS[:, ::-1],
        3: PIXELS[::-1, ::-1],
        4: PIXELS[::-1],
        5: PIXELS.transpose(1, 0, 2),
        6: np.rot90(PIXELS, -1),
        7: PIXELS.transpose(1, 0, 2)[::-1, ::-1],
        8: np.rot90(PIXELS, 1),
    }
    np.testing.assert_array_equal(turned, expected[orientation])


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")  # Pillow says so; the picture is whole
def test_damaged_exif_counts_as_none() -> None:
    data = encode(Image.fromarray(PIXELS), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert rgb(data).shape == PIXELS.shape


def test_animation_gives_its_first_frame() -> None:
    frames = [Image.new("RGB", (W, H), c) for c in ("red", "blue")]
    data = encode(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert tuple(rgb(data)[0, 0]) == (255, 0, 0)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"])
def test_truncated_files_are_refused_or_whole(kind: str) -> None:
    big = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = encode(Image.fromarray(big), kind)
    for share in (0.02, 0.3, 0.6, 0.9):
        with pytest.raises(BadImage):
            rgb(data[: int(len(data) * share)])


@settings(deadline=None)  # a busy machine is slow, not wrong
@given(st.binary(max_size=200), st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"]))
def test_rubbish_raises_nothing_but_bad_image(noise: bytes, kind: str) -> None:
    data = bytearray(encode(Image.fromarray(PIXELS), kind))
    data[20 : 20 + len(noise)] = noise
    for junk in (noise, bytes(data)):
        with contextlib.suppress(BadImage):
            assert rgb(junk).shape[2] == 3


def bomb(side: int) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        crc = zlib.crc32(name + body)
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1000))
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", body), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("side", [9_000, 12_000, 60_000])
def test_decompression_bombs_are_refused_without_warning(side: int) -> None:
    with pytest.raises(BadImage, match="above the limit"):
        rgb(bomb(side))


def test_the_limit_holds_for_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_PIXELS", H * W - 1)
    for form in (PIXELS, Image.fromarray(PIXELS), torch.from_numpy(PIXELS.copy())):
        with pytest.raises(BadImage, match="above the limit"):
            rgb(form)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (np.zeros((0, 4, 3), np.uint8), "no pixels"),
        (Image.new("RGB", (0, 4)), "no pixels"),
        (np.zeros(4, np.uint8), "2 or 3 dimensions"),
        (np.zeros((1, 4, 4, 3), np.uint8), "one at a time"),
        (np.zeros((4, 4, 2), np.uint8), "channels last"),
        (np.zeros((3, 40, 40), np.uint8), "transpose"),
        (np.full((4, 4, 3), np.nan), "NaN"),
        (np.full((4, 4, 3), np.inf), "NaN or infinite"),
        (np.full((4, 4, 3), 1.5), "divide by 255"),
        (np.full((4, 4, 3), -0.1), r"\[0, 1\]"),
        (torch.full((3, 4, 4), float("nan")), "NaN"),
        (np.zeros((4, 4, 3), complex), "complex"),
        (np.array([["a"]]), "type"),
        (b"", "empty"),
        (b"certainly not an image", "the file is not a supported image"),
        (None, "NoneType"),
        ([[1, 2], [3, 4]], "list"),
        ("no/such/file.png", "no such file"),
        ("nul\0byte", "cannot open"),
    ],
)
def test_bad_input_says_why(bad: object, reason: str) -> None:
    with pytest.raises(BadImage, match=reason):
        rgb(bad)


def test_bad_paths(tmp_path: Path) -> None:
    with pytest.raises(BadImage, match="directory"):
        rgb(tmp_path)
    text = tmp_path / "a.jpg"
    text.write_text("hello")
    with pytest.raises(BadImage, match=r"a\.jpg is not a supported image"):
        rgb(text)
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(BadImage, match="regular file"):
            rgb(tmp_path / "pipe")


def test_large_jpegs_decode_small_but_never_too_small() -> None:
    smooth = Image.linear_gradient("L").resize((1000, 700)).convert("RGB")
    data = encode(smooth, "JPEG")
    assert rgb(data).shape == (700, 1000, 3)
    assert rgb(data, at_least=224).shape == (350, 500, 3)
    assert rgb(data, at_least=351).shape == (700, 1000, 3)
    reference = np.asarray(smooth.resize((500, 350))).astype(int)
    assert np.abs(rgb(data, at_least=224).astype(int) - reference).mean() < 2
    grey = encode(smooth.convert("L"), "JPEG")
    assert rgb(grey, at_least=224).shape == (350, 500, 3)


def test_the_input_is_unchanged() -> None:
    image = Image.fromarray(np.dstack([PIXELS, PIXELS[:, :, :1]]))
    before = image.tobytes()
    rgb(image)
    assert image.mode == "RGBA"
    assert image.tobytes() == before
