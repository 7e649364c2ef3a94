"""Ask at full rate, alone and while the server learns at full rate.

    python -m benchmarks.load [--seconds 10] [--rounds 3] [--askers 1] [--url URL]

Rounds alternate between the two, so that what else the machine does meets both. Each asker sends
camera frames one after the other; two teachers keep the learn queue busy. The goal on two cores:
the 95th percentile while learning is at most twice that of idle times, and no request fails.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from verse.serve.client import Client, ServiceError

START_SECONDS = 120


def frame(seed: int) -> bytes:
    """A 640×480 JPEG as a camera gives it."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 255, (12, 16, 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(small).resize((640, 480), Image.Resampling.BICUBIC).save(file, "JPEG")
    return file.getvalue()


@dataclass(frozen=True)
class Served:
    """A running server: its address, its process, its directory."""

    url: str
    pid: int
    directory: Path


@contextmanager
def server(*options: str) -> Iterator[Served]:
    """``verse serve`` on a new directory; it must end well."""
    with tempfile.TemporaryDirectory() as place:
        directory, log = Path(place) / "taught", Path(place) / "log"
        with open(log, "w") as told:  # no pipe: nobody would empty it
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "verse.cli",
                    "serve",
                    str(directory),
                    "--port",
                    "0",
                    *options,
                ],
                stderr=told,
                env={**os.environ, "COLUMNS": "200"},
            )
        try:
            yield Served(_address(process, log), process.pid, directory)
        finally:
            process.terminate()
            code = process.wait(60)
        assert code in (0, -15), f"the server ended with {code}: {log.read_text()}"


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        for line in log.read_text().splitlines():
            if line.startswith("Serving on"):
                return line.split()[-1]
        time.sleep(0.05)
    raise AssertionError(f"the server does not start: {log.read_text()}")


class Asked:
    """Latencies of asking one frame after the other, by several askers at once, and errors."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.errors = 0
        self.seconds = 0.0

    def run(self, url: str, seconds: float, frames: list[bytes], askers: int) -> None:
        begin = time.perf_counter()
        threads = [
            threading.Thread(target=self._ask, args=(url, begin + seconds, frames, i))
            for i in range(askers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.seconds += time.perf_counter() - begin

    def _ask(self, url: str, end: float, frames: list[bytes], i: int) -> None:
        with Client(url, retries=0) as client:
            while (begin := time.perf_counter()) < end:
                try:
                    client.predict(frames[i % len(frames)])
                    self.taken.append(time.perf_counter() - begin)
                except ServiceError:
                    self.errors += 1
                i += 1

    def summary(self) -> dict[str, float]:
        milliseconds = np.array(self.taken) * 1000
        return {
            "requests": len(self.taken),
            "requests_per_s": round(len(self.taken) / self.seconds, 1),
            "p50_ms": round(float(np.percentile(milliseconds, 50)), 1),
            "p95_ms": round(float(np.percentile(milliseconds, 95)), 1),
            "max_ms": round(float(milliseconds.max()), 1),
            "errors": self.errors,
        }


class Teachers:
    """Teach as fast as the server learns, until told to stop."""

    def __init__(self) -> None:
        self.learned = self.errors = 0
        self.seconds = 0.0
        self._counting = threading.Lock()

    @contextmanager
    def at_work(self, url: str, frames: list[bytes], n: int = 2) -> Iterator[None]:
        stop, begin = threading.Event(), time.perf_counter()
        threads = [
            threading.Thread(target=self._teach, args=(url, frames, i, stop)) for i in range(n)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()
            self.seconds += time.perf_counter() - begin

    def _teach(self, url: str, frames: list[bytes], i: int, stop: threading.Event) -> None:
        with Client(url, retries=0) as client:
            while not stop.is_set():
                try:
                    client.learn(frames[i % len(frames)], f"class {i % 10}")
                    error = 0
                except ServiceError:
                    error = 1
                with self._counting:
                    self.learned += 1 - error
                    self.errors += error
                i += 1


def measure(url: str, seconds: float, rounds: int, askers: int) -> dict[str, object]:
    frames = [frame(i) for i in range(20)]
    with Client(url) as client:
        for i in range(40):  # ten classes, warm caches
            client.learn(frames[i % 20], f"class {i % 10}")
    Asked().run(url, 1, frames, askers)
    idle, busy, teachers = Asked(), Asked(), Teachers()
    for _ in range(rounds):
        idle.run(url, seconds, frames, askers)
        with teachers.at_work(url, frames):
            busy.run(url, seconds, frames, askers)
    a, b = idle.summary(), busy.summary()
    return {
        "idle": a,
        "learning": b,
        "learned_per_s": round(teachers.learned / teachers.seconds, 1),
        "learn_errors": teachers.errors,
        "p50_ratio": round(b["p50_ms"] / a["p50_ms"], 2),
        "p95_ratio": round(b["p95_ms"] / a["p95_ms"], 2),
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--askers", type=int, default=1)
    parser.add_argument("--url")
    options = parser.parse_args()
    how = (options.seconds, options.rounds, options.askers)
    if options.url:
        result = measure(options.url, *how)
    else:
        with server("--rate", "0") as served:
            result = measure(served.url, *how)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
