"""Ask at full rate, alone and while the server learns at full rate.

    python benchmarks/load.py [--seconds 10] [--rounds 3] [--url URL]

Rounds alternate between the two, so that what else the machine does meets both. One asker sends
camera frames one after the other; teachers keep the learn queue busy. The goal on two cores: the
95th percentile while learning is at most twice that of idle times.
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

import numpy as np
from PIL import Image

from verse.serve.client import Client


def frame(seed: int) -> bytes:
    """A 640×480 JPEG as a camera gives it."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 255, (12, 16, 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(small).resize((640, 480), Image.Resampling.BICUBIC).save(file, "JPEG")
    return file.getvalue()


@contextmanager
def server(*options: str) -> Iterator[str]:
    """``verse serve`` on a new directory; its address."""
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [sys.executable, "-m", "verse.cli", "serve", f"{directory}/taught", "--port", "0",
             "--rate", "0", *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("Serving on"), line + process.stderr.read()
        try:
            yield line.split()[-1]
        finally:
            process.terminate()
            process.wait(60)
            process.stderr.close()


def ask(url: str, seconds: float, frames: list[bytes]) -> list[float]:
    """Latencies of asking one frame after the other."""
    taken = []
    with Client(url, retries=0) as client:
        end = time.perf_counter() + seconds
        while (begin := time.perf_counter()) < end:
            client.predict(frames[len(taken) % len(frames)])
            taken.append(time.perf_counter() - begin)
    return taken


class Teachers:
    """Teach as fast as the server learns, until told to stop."""

    def __init__(self, url: str, frames: list[bytes], n: int = 2) -> None:
        self.learned = 0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._teach, args=(url, frames, i)) for i in range(n)
        ]
        for thread in self._threads:
            thread.start()

    def _teach(self, url: str, frames: list[bytes], i: int) -> None:
        with Client(url) as client:
            while not self._stop.is_set():
                client.learn(frames[i % len(frames)], f"class {i % 10}")
                self.learned += 1
                i += 1

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def summary(taken: list[float]) -> dict[str, float]:
    milliseconds = np.array(taken) * 1000
    return {
        "requests_per_s": round(len(taken) / sum(taken), 1),
        "p50_ms": round(float(np.percentile(milliseconds, 50)), 1),
        "p95_ms": round(float(np.percentile(milliseconds, 95)), 1),
        "max_ms": round(float(milliseconds.max()), 1),
    }


def measure(url: str, seconds: float, rounds: int) -> dict[str, object]:
    frames = [frame(i) for i in range(20)]
    with Client(url) as client:
        for i in range(40):  # ten classes, warm caches
            client.learn(frames[i % 20], f"class {i % 10}")
    ask(url, 1, frames)
    idle: list[float] = []
    busy: list[float] = []
    learned = 0
    for _ in range(rounds):
        idle += ask(url, seconds, frames)
        teachers = Teachers(url, frames)
        busy += ask(url, seconds, frames)
        teachers.stop()
        learned += teachers.learned
    a, b = summary(idle), summary(busy)
    return {
        "idle": a,
        "learning": b,
        "learned_per_s": round(learned / (rounds * seconds), 1),
        "p95_ratio": round(b["p95_ms"] / a["p95_ms"], 2),
        "load_average": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--url")
    options = parser.parse_args()
    if options.url:
        result = measure(options.url, options.seconds, options.rounds)
    else:
        with server() as url:
            result = measure(url, options.seconds, options.rounds)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
