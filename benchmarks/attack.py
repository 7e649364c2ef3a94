"""Ask beside an attacker: one address must not stop the others.

    python -m benchmarks.attack [--seconds 8] [--rounds 2] [--kinds silent,bombs]

A server of its own on loopback, nothing else is touched. The attacker is another process with
another loopback address (127.0.0.66), of a lower priority, as if it were on another machine; its
connections and its time are bounded. Rounds alternate between asking alone and asking under
attack. The goal: the 95th percentile under attack is at most three times that of asking alone, no
request of the asker fails, and the memory of server and decoders stays below twice that of idle.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from PIL import Image

from benchmarks.load import Asked, frame, server
from verse.serve.client import Client

ADDRESS = "127.0.0.66"
MIB = 2**20
HEAD = "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FORM = "Content-Type: multipart/form-data; boundary=x\r\n"


# ---- what is sent --------------------------------------------------------------------------------


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def bombs() -> dict[str, bytes]:
    """Small files that take long to decode, or much memory."""
    png = saved(Image.new("L", (8, 8)), "PNG")
    runs = b"\x01\x00" * 6_000_000  # one pixel each
    info = struct.pack("<IiiHHIIiiII", 40, 6000, 4000, 1, 8, 1, len(runs), 0, 0, 256, 0)
    bmp = struct.pack("<2sIHHI", b"BM", 0, 0, 0, 14 + 40 + 1024) + info + bytes(1024) + runs
    return {
        "PBM as text": b"P1\n3500 2000\n" + b"0 " * 7_000_000,
        "PPM as text": b"P3\n1000 1000\n255\n" + b"0 " * 3_000_000,
        "PNG of a million chunks": png[:33] + chunk(b"teSt", b"") * 1_000_000 + png[33:],
        "PNG of 24 million pixels": saved(Image.new("RGB", (6000, 4000)), "PNG"),
        "the same with alpha": saved(Image.new("RGBA", (6000, 4000)), "PNG"),
        "BMP of single pixels": bmp,
        "GIF of 24 million pixels": saved(Image.new("L", (6000, 4000)), "GIF"),
        "TIFF of 24 million pixels": saved(
            Image.new("RGB", (6000, 4000)), "TIFF", compression="tiff_lzw"
        ),
        "WebP of 16 million pixels": saved(
            Image.new("RGB", (4000, 4000)), "WEBP", lossless=True, method=0
        ),
    }


def upload(image: bytes) -> bytes:
    field = b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    body = field + image + b"\r\n--x--\r\n"
    return f"{HEAD}{FORM}Content-Length: {len(body)}\r\n\r\n".encode() + body


# ---- how it is sent ------------------------------------------------------------------------------


class Attacker:
    """``n`` connections at a time until the time is over; what they were answered."""

    def __init__(self, url: str, seconds: float) -> None:
        parts = urlsplit(url)
        self.host, self.port = str(parts.hostname), int(parts.port or 80)
        self.end = time.monotonic() + seconds
        self.heard: Counter[str] = Counter()

    async def run(self, n: int, act: Callable[..., Coroutine[Any, Any, None]]) -> None:
        await asyncio.gather(*(self._again(act, i) for i in range(n)))

    async def _again(self, act: Callable[..., Coroutine[Any, Any, None]], i: int) -> None:
        while time.monotonic() < self.end:
            self.heard["attempts"] += 1
            try:
                reader, writer = await asyncio.open_connection(
                    self.host, self.port, local_addr=(ADDRESS, 0)
                )
                try:
                    async with asyncio.timeout(max(0.1, self.end - time.monotonic())):
                        await act(reader, writer, i)
                        line = await reader.readline()
                        self.heard[line[9:12].decode() or "closed"] += 1
                finally:
                    writer.close()
            except TimeoutError:
                self.heard["held to the end"] += 1
            except OSError:
                self.heard["reset"] += 1
            await asyncio.sleep(0.1)  # bounded: ten attempts a second of each

    async def silent(self, reader: Any, writer: Any, i: int) -> None:
        pass  # nothing is sent, for as long as that is allowed

    async def slow_headers(self, reader: Any, writer: Any, i: int) -> None:
        for letter in f"{HEAD}X-Slow: {'a' * 600}\r\n":
            writer.write(letter.encode())
            await writer.drain()
            await asyncio.sleep(0.3)

    async def slow_bodies(self, reader: Any, writer: Any, i: int) -> None:
        writer.write(f"{HEAD}{FORM}Content-Length: {15 * MIB}\r\n\r\n".encode())
        while time.monotonic() < self.end:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.3)

    async def large(self, reader: Any, writer: Any, i: int) -> None:
        writer.write(upload(LARGE))
        await writer.drain()

    async def bombs(self, reader: Any, writer: Any, i: int) -> None:
        writer.write(BOMBS[i % len(BOMBS)])
        await writer.drain()

    async def listeners(self, reader: Any, writer: Any, i: int) -> None:
        writer.write(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await writer.drain()
        if (line := await reader.readline())[9:12] == b"200":
            self.heard["200"] += 1
            while await reader.read(1000):
                pass
        self.heard[line[9:12].decode()] += 1

    async def nonsense(self, reader: Any, writer: Any, i: int) -> None:
        writer.write(b"\x16\x03\x01 nonsense \xff\r\n\r\n" * 20)
        await writer.drain()


KINDS = {
    "silent": 300,
    "slow_headers": 200,
    "slow_bodies": 100,
    "large": 150,
    "bombs": 9,
    "listeners": 100,
    "nonsense": 20,
}
LARGE = b""
BOMBS: list[bytes] = []


def attack(url: str, kind: str, seconds: float, nice: int) -> None:
    global LARGE
    os.nice(nice)
    LARGE = os.urandom(MIB) * 15
    if kind == "bombs":
        BOMBS.extend(upload(image) for image in bombs().values())
    attacker = Attacker(url, seconds)
    print("ready", flush=True)
    asyncio.run(attacker.run(KINDS[kind], getattr(attacker, kind)))
    print(json.dumps(attacker.heard))


# ---- what is measured ----------------------------------------------------------------------------


def memory(pid: int) -> float:
    """MiB of a process and its children, pages they share counted once."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    total = 0
    for one in (pid, *children):
        with suppress(OSError):
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
            total += int(text.split("Pss:")[1].split()[0])
    return total / 1024


@contextmanager
def watched(pid: int, seen: list[float]) -> Iterator[None]:
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(0.25):
            seen.append(memory(pid))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure(
    url: str, pid: int, kinds: list[str], seconds: float, rounds: int, nice: int
) -> Iterator[dict[str, object]]:
    frames = [frame(i) for i in range(20)]
    with Client(url) as client:
        for i in range(20):
            client.learn(frames[i], f"class {i % 10}")
    quiet: list[float] = []
    with watched(pid, quiet):
        Asked().run(url, 2, frames, 1)
    for kind in kinds:
        idle, busy = Asked(), Asked()
        seen: list[float] = []
        heard: Counter[str] = Counter()
        for _ in range(rounds):
            idle.run(url, seconds, frames, 1)
            attacker = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.attack",
                    "--as",
                    kind,
                    "--url",
                    url,
                    "--seconds",
                    str(seconds + 1),
                    "--nice",
                    str(nice),
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert attacker.stdout is not None
            attacker.stdout.readline()
            time.sleep(0.5)
            with watched(pid, seen):
                busy.run(url, seconds, frames, 1)
            heard.update(json.loads(attacker.communicate()[0]))
        a, b = idle.summary(), busy.summary()
        yield {
            "attack": kind,
            "idle": a,
            "attacked": b,
            "p95_ratio": round(b["p95_ms"] / a["p95_ms"], 2),
            "p50_ratio": round(b["p50_ms"] / a["p50_ms"], 2),
            "idle_mib": round(sorted(quiet)[len(quiet) // 2]),
            "attacked_mib": round(max(seen)),
            "attacker_heard": dict(heard),
            "load_average": round(os.getloadavg()[0], 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--nice", type=int, default=10, help="of the attacker's process")
    parser.add_argument("--as", dest="kind", choices=list(KINDS), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        attack(options.url, options.kind, options.seconds, options.nice)
        return
    with server() as served:
        kinds = options.kinds.split(",")
        how = (options.seconds, options.rounds, options.nice)
        for row in measure(served.url, served.pid, kinds, *how):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
