"""Processes that decode uploads, each of which is killed when a picture takes too long."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from verse.backbones.base import Extractor
from verse.backbones.extractor import FrozenNetwork
from verse.backbones.preprocess import Preprocess as SquarePreprocess
from verse.images import RGB, Square
from verse.serve.errors import Closing
from verse.serve.pictures import Picture
from verse.serve.workers import decode
from verse.types import BadImage

Preprocess: TypeAlias = Callable[[object], npt.NDArray[np.generic]]

MAX_PIXELS = 24_000_000
SECONDS = 5.0  # for one picture
LONG = 0.25  # seconds: a picture that computes for longer lets everybody else go first
PACKAGES = Path(__file__).parents[3]  # where a process of its own finds this package
PIPE_BYTES = 2**20  # fewer changes between the two processes


class DecoderProcess:
    """One process that decodes one picture after the other."""

    def __init__(self, task: decode.DecodeTask) -> None:
        paths = [str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", decode.__name__, task.text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what a decoder says of a damaged file fills no log
            bufsize=0,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
            # Ctrl-C is for the server, which finishes what waits. No session of its own: where each
            # has an equal share of the processor, no priority could be given below that.
            process_group=0,
        )
        self.timed_out = self.stood_back = self._ready = False
        _widen(self.process.stdin, self.process.stdout)

    def decode(self, image: bytes, name: str, seconds: float) -> tuple[RGB, RGB]:
        """Pixels and thumbnail. ``EOFError``: the process died, or was killed for its slowness."""
        if not self._ready:  # its start is nothing that a picture answers for
            self._ready = self._read(1) == b"R"
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(done, seconds), daemon=True)
        watch.start()
        try:
            named = name.encode()
            self._write(decode.REQUEST.pack(len(image), len(named)) + named)
            self._write(image)
            return self._answer()
        except OSError as error:
            raise EOFError from error
        finally:
            done.set()
            watch.join()

    def close(self) -> None:
        """Kill it; there is nothing in it to lose."""
        with suppress(OSError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _watch(self, done: threading.Event, seconds: float) -> None:
        """Look after one picture: one that computes for long gets the lowest priority, one that is
        not ``done`` in time is given up."""
        end = time.monotonic() + seconds
        if done.wait(min(LONG, seconds)):
            return
        before = _processor_seconds(self.process.pid)
        while (left := end - time.monotonic()) > 0:
            if done.wait(left if self.stood_back else min(LONG, left)):
                return
            if _processor_seconds(self.process.pid) - before > LONG / 2:
                with suppress(OSError, AttributeError):
                    os.setpriority(os.PRIO_PROCESS, self.process.pid, 19)
                self.stood_back = True
        self.timed_out = True
        self.process.kill()

    def _write(self, content: bytes) -> None:
        assert self.process.stdin is not None
        left = memoryview(content)
        while left:
            left = left[self.process.stdin.write(left) :]

    def _answer(self) -> tuple[RGB, RGB]:
        if self._read(1) == b"E":
            (length,) = decode.ERROR.unpack(self._read(decode.ERROR.size))
            raise BadImage(self._read(length).decode())
        height, width, *tiny = decode.PIXELS.unpack(self._read(decode.PIXELS.size))
        pixels, small = np.empty((height, width, 3), np.uint8), np.empty((*tiny, 3), np.uint8)
        self._fill(pixels)
        self._fill(small)
        return pixels, small

    def _read(self, n: int) -> bytes:
        content = bytearray(n)
        self._fill(content)
        return bytes(content)

    def _fill(self, target: Any) -> None:
        assert self.process.stdout is not None
        left = memoryview(target).cast("B")
        while left:
            n = self.process.stdout.readinto(left)  # type: ignore[attr-defined]
            if not n:
                raise EOFError
            left = left[n:]


class Decoder:
    """Turns uploads into pictures, ``workers`` at once.

    ``preprocess`` makes the network's input of the pixels, unless it is known to be a ``square``:
    that is cut where the picture is decoded. A picture of more than ``max_pixels``, or one that is
    not decoded within ``seconds``, is refused, and the process that tried is replaced.

    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (300, 200), "red").save(file, "PNG")
    >>> decoder = Decoder(lambda pixels: pixels, workers=1)
    >>> decoder.start()
    >>> decoder.decode(file.getvalue()).result().small.shape
    (64, 96, 3)
    >>> decoder.close()
    """

    def __init__(
        self,
        preprocess: Preprocess,
        *,
        square: Square | None = None,
        max_pixels: int = MAX_PIXELS,
        seconds: float = SECONDS,
        workers: int | None = None,
    ) -> None:
        self.workers = workers or max(2, min(4, os.cpu_count() or 2))
        self.seconds = seconds
        self._preprocess = preprocess if square is None else None
        self._task = decode.DecodeTask(max_pixels, square)
        self.idle: queue.SimpleQueue[DecoderProcess] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(self.workers, "verse-decode")
        self._closed = False

    def start(self) -> None:
        """Start the processes."""
        for _ in range(self.workers):
            self.idle.put(DecoderProcess(self._task))

    def decode(self, image: bytes, name: str = "the file") -> Future[Picture]:
        """From any thread: the picture, or ``BadImage``."""
        if self._closed:
            raise Closing
        return self._threads.submit(self._decode, image, name)

    def _decode(self, image: bytes, name: str) -> Picture:
        process, ended = self.idle.get(), False
        try:
            pixels, small = process.decode(image, name, self.seconds)
        except EOFError:
            ended = True
            late = process.timed_out
            why = f"took more than {self.seconds:g} s to decode" if late else "cannot be decoded"
            raise BadImage(f"{name} {why}: save it again as JPEG or PNG") from None
        finally:
            # without rights a priority once given away cannot be had back
            if ended or process.timed_out or process.stood_back:
                process.close()
                process = DecoderProcess(self._task)
            self.idle.put(process)
        inputs = pixels if self._preprocess is None else self._preprocess(pixels)
        return Picture(inputs, small, image)

    def close(self) -> None:
        """Finish what is being decoded, and end the processes."""
        self._closed = True
        self._threads.shutdown()
        while not self.idle.empty():
            self.idle.get().close()


def square_of(G: Extractor) -> Square | None:
    """What G takes of an image, where that is a square: the service learns the same bits as the
    library does from the same file."""
    prepare = G.prepare if isinstance(G, FrozenNetwork) else None
    return prepare.square if isinstance(prepare, SquarePreprocess) else None


def _processor_seconds(pid: int) -> float:
    """What a process has computed so far; 0 where that is not known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


def _widen(*pipes: IO[bytes] | None) -> None:
    """Larger pipes, where the system has them."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        for pipe in pipes:
            if pipe is not None:
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
