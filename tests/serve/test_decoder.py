"""Pictures that take too long, kill their process, or are of no format that may be sent."""

from __future__ import annotations

import io
import os
import signal
import struct
import time
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from verse import images
from verse.serve.errors import Closing
from verse.serve.workers import decode
from verse.serve.workers import decoder as module
from verse.serve.workers.decoder import Decoder, square_of
from verse.types import BadImage


@pytest.fixture(scope="module")
def decoder():
    made = Decoder(lambda pixels: pixels, workers=2, seconds=20.0)
    made.start()
    yield made
    made.close()


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


SQUARE = Image.new("RGB", (40, 30), (200, 30, 30))


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "AVIF", "MPO"])
def test_usual_formats_are_decoded(decoder, kind: str) -> None:
    if kind not in Image.SAVE and not (Image.init() and kind in Image.SAVE):
        pytest.skip(f"this Pillow cannot write {kind}")
    picture = decoder.decode(saved(SQUARE, kind)).result(60)
    assert picture.inputs.shape == picture.small.shape == (30, 40, 3)
    assert np.abs(picture.inputs[15, 20].astype(int) - (200, 30, 30)).max() < 20


@pytest.mark.parametrize(
    "content",
    [
        b"P1\n3 2\n0 1 0 1 0 1\n",
        b"P3\n1 1\n255\n0 0 0\n",
        saved(SQUARE, "PPM"),
        saved(SQUARE, "EPS"),
        saved(SQUARE, "PDF"),
        saved(SQUARE, "JPEG2000"),
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"junk",
    ],
    ids=["PBM text", "PPM text", "PPM", "EPS", "PDF", "JPEG2000", "SVG", "junk"],
)
def test_other_formats_are_refused_by_name(decoder, content: bytes) -> None:
    with pytest.raises(BadImage, match=r"mug\.txt is not a supported image: use JPEG, PNG"):
        decoder.decode(content, "mug.txt").result(60)


def test_the_pixels_are_those_the_library_decodes(decoder, backbone) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (900, 700, 3)).astype(np.uint8)
    G = backbone.G
    beside = Decoder(G.preprocess, square=square_of(G), workers=1)
    beside.start()
    try:
        for kind in ("JPEG", "PNG"):
            content = saved(Image.fromarray(noise), kind)
            inputs = beside.decode(content).result(60).inputs
            np.testing.assert_array_equal(inputs, G.preprocess(content))
            pixels = decoder.decode(content).result(60).inputs
            np.testing.assert_array_equal(pixels, images.rgb(content))
    finally:
        beside.close()


def test_a_large_image_is_refused_from_its_header(decoder) -> None:
    with pytest.raises(BadImage, match="above the limit of 24000000"):
        decoder.decode(saved(Image.new("1", (7000, 7000)), "PNG")).result(60)


def test_a_picture_that_takes_too_long_is_refused_and_harms_no_other() -> None:
    decoder = Decoder(lambda pixels: pixels, workers=2, seconds=3.0)
    decoder.start()
    try:
        for _ in range(4):  # both have started
            decoder.decode(saved(SQUARE, "PNG")).result(60)
        stopped, other = decoder.idle.get(), decoder.idle.get()
        stopped.process.send_signal(signal.SIGSTOP)  # too slow on any machine
        decoder.idle.put(stopped)
        slow = decoder.decode(saved(SQUARE, "PNG"), "slow.png")
        while not decoder.idle.empty():  # until it was taken
            time.sleep(0.01)
        decoder.idle.put(other)
        beside = [decoder.decode(saved(SQUARE, "JPEG")) for _ in range(5)]
        assert [b.result(60).inputs.shape for b in beside] == [(30, 40, 3)] * 5
        with pytest.raises(BadImage, match=r"slow\.png took more than 3 s"):
            slow.result(60)
        assert stopped.process.returncode == -signal.SIGKILL
        for _ in range(4):  # the process that was killed is replaced
            assert decoder.decode(saved(SQUARE, "PNG")).result(60).small.shape == (30, 40, 3)
    finally:
        decoder.close()


def many_chunks(n: int) -> bytes:
    """A PNG that takes long to look through."""

    def chunk(name: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + check

    png = saved(SQUARE, "PNG")
    return png[:33] + chunk(b"teSt", b"") * n + png[33:]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.slow
def test_a_picture_that_computes_for_long_lets_the_others_go_first(monkeypatch) -> None:
    monkeypatch.setattr(module, "LONG", 0.05)
    decoder = Decoder(lambda pixels: pixels, workers=1, seconds=120.0)
    decoder.start()
    try:
        process = decoder.idle.get()
        decoder.idle.put(process)
        answer = decoder.decode(many_chunks(300_000))
        lowest = 0
        while not answer.done():
            with suppress(ProcessLookupError):
                lowest = max(lowest, os.getpriority(os.PRIO_PROCESS, process.process.pid))
            time.sleep(0.005)
        assert answer.result().small.shape == (30, 40, 3)
        assert process.stood_back and lowest == 19
        assert decoder.decode(saved(SQUARE, "PNG")).result(60).small.shape == (30, 40, 3)
        other = decoder.idle.get()
        decoder.idle.put(other)
        assert other is not process  # the next ones have the usual priority again
    finally:
        decoder.close()


def test_a_process_that_dies_is_replaced() -> None:
    decoder = Decoder(lambda pixels: pixels, workers=1)
    decoder.start()
    try:
        process = decoder.idle.get()
        process.process.kill()
        process.process.wait()
        decoder.idle.put(process)
        with pytest.raises(BadImage, match="cannot be decoded"):
            decoder.decode(saved(SQUARE, "PNG")).result(60)
        assert decoder.decode(saved(SQUARE, "PNG")).result(60).small.shape == (30, 40, 3)
    finally:
        decoder.close()


def test_an_error_of_the_preprocessing_leaves_the_process_usable() -> None:
    def broken(pixels: object) -> np.ndarray:
        raise BadImage("no")

    decoder = Decoder(broken, workers=1)
    decoder.start()
    try:
        for _ in range(3):
            with pytest.raises(BadImage, match=r"^no$"):
                decoder.decode(saved(SQUARE, "PNG")).result(60)
    finally:
        decoder.close()


def test_closing_ends_the_processes() -> None:
    decoder = Decoder(lambda pixels: pixels, workers=2)
    decoder.start()
    started = [decoder.idle.get(), decoder.idle.get()]
    for process in started:
        decoder.idle.put(process)
    decoder.close()
    assert all(process.process.returncode is not None for process in started)
    with pytest.raises(Closing):
        decoder.decode(b"late")


def test_the_process_itself() -> None:
    content, answers = saved(Image.new("RGB", (400, 200)), "PNG"), io.BytesIO()
    request = decode.REQUEST.pack(len(content), 1) + b"a" + content
    decode.answer_requests(decode.DecodeTask(100_000), io.BytesIO(request * 2), answers)
    size = 17 + 3 * (200 * 400 + 48 * 96)
    assert answers.getvalue()[:1] == b"P" and len(answers.getvalue()) == 2 * size
    assert decode.PIXELS.unpack_from(answers.getvalue(), 1) == (200, 400, 48, 96)
    answers = io.BytesIO()
    decode.answer_requests(
        decode.DecodeTask(100_000, images.Square(32)), io.BytesIO(request), answers
    )
    assert decode.PIXELS.unpack_from(answers.getvalue(), 1) == (32, 32, 48, 96)
    answers = io.BytesIO()
    decode.answer_requests(decode.DecodeTask(100), io.BytesIO(request), answers)
    assert answers.getvalue()[:1] == b"E"
    assert "a has 400×200 pixels, above the limit of 100".encode() in answers.getvalue()
