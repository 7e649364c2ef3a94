"""Use a server for a long time: teach, ask, listen, undo, rename, forget; memory must stay flat.

    python -m benchmarks.soak [--minutes 15]

Every 400 samples a class is forgotten for good and then taught again. Memory is looked at every few
seconds; it must not follow the number of requests once the server has seen all kinds of them.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.load import frame, server
from verse.serve.client import Client, ServiceError

KINDS = ("learned", "asked", "heard", "undone", "renamed", "forgotten", "errors")


def resident(pid: int) -> float:
    """Memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def live(url: str) -> float:
    """MiB in blocks that the server really uses, gaps between them not counted."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return float(re.findall(r"^verse_heap_bytes (\S+)$", text, re.MULTILINE)[0]) / 2**20


def size(directory: Path) -> float:
    """Its files in MiB; one may go while it is looked at."""
    return sum(os.stat(f).st_size for f in directory.iterdir() if f.exists()) / 2**20


@dataclass
class Use:
    """Restless users of one server, each in a thread of its own."""

    url: str

    def __post_init__(self) -> None:
        self.counts: Counter[str] = Counter(dict.fromkeys(("requests", *KINDS), 0))
        self.stop = threading.Event()
        self._counting = threading.Lock()

    def done(self, what: str, requests: int = 1) -> None:
        with self._counting:
            self.counts[what] += 1
            self.counts["requests"] += requests

    def teach(self) -> None:
        frames = [frame(i) for i in range(24)]
        with Client(self.url) as client:
            for i in itertools.count():
                if self.stop.is_set():
                    return
                seq = client.learn(frames[i % 24], f"class {i % 8}")["seq"]
                self.done("learned")
                if i % 50 == 49:
                    client.undo(seq)
                    self.done("undone")
                if i % 100 == 99:
                    client.rename("class 1", "other")
                    client.rename("other", "class 1")
                    self.done("renamed", 2)
                if i % 400 == 399:
                    client.forget("class 7")
                    self.done("forgotten")

    def ask(self) -> None:
        frames = [frame(i) for i in range(24)]
        with Client(self.url) as client:
            for i in itertools.count():
                if self.stop.is_set():
                    return
                client.predict(frames[i % 24])
                client.classes()
                self.done("asked", 2)
                time.sleep(0.02)

    def listen(self) -> None:
        while not self.stop.is_set():
            with Client(self.url) as client:
                self.done("listeners")
                for heard, _ in enumerate(client.events()):
                    self.counts["heard"] += 1
                    if self.stop.is_set():
                        return
                    if heard == 200:
                        break  # listeners come and go

    def guarded(self, work: Callable[[], None]) -> None:
        """An error of the server ends nobody's work, and is counted."""
        while not self.stop.is_set():
            try:
                work()
            except ServiceError as error:
                self.done("errors")
                print(f"error: {error}", flush=True)


@dataclass(frozen=True)
class Look:
    """Memory of the server at one moment, in MiB, and the requests until then."""

    seconds: float
    resident: float
    live: float
    requests: int


def summary(looks: list[Look]) -> str:
    """What memory did."""
    end = looks[-1].seconds
    lines = []
    for k, name in enumerate(("first", "middle", "last")):
        part = [x for x in looks if end * k / 3 <= x.seconds <= end * (k + 1) / 3]
        resident, live = [x.resident for x in part], [x.live for x in part]
        lines.append(
            f"{name} third: resident {min(resident):.1f} MiB (least), "
            f"{np.median(resident):.1f} (median); in use {np.median(live):.1f} (median)"
        )
    late = [x for x in looks if x.seconds > end / 3]
    thousands = [x.requests / 1000 for x in late]
    # single looks differ: a checkpoint in the making needs some MiB for a moment
    slopes = [
        f"{name} {np.polyfit(thousands, values, 1)[0]:+.2f} MiB (looks: ±{np.std(values):.1f})"
        for name, values in (
            ("resident", [x.resident for x in late]),
            ("in use", [x.live for x in late]),
        )
    ]
    lines.append(
        f"slope per 1,000 requests over the last two thirds "
        f"({1000 * (thousands[-1] - thousands[0]):.0f} requests): {', '.join(slopes)}"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    options = parser.parse_args()
    with server("--rate", "0") as served:
        use = Use(served.url)
        users = [
            threading.Thread(target=use.guarded, args=(work,))
            for work in (use.teach, use.ask, use.listen)
        ]
        for user in users:
            user.start()
        begin = time.monotonic()
        looks: list[Look] = []
        while (now := time.monotonic() - begin) < options.minutes * 60:
            time.sleep(min(5.0, options.minutes * 2))
            look = Look(now, resident(served.pid), live(served.url), use.counts["requests"])
            looks.append(look)
            print(
                f"{now:6.0f} s  {look.resident:7.1f} MiB resident  {look.live:7.1f} in use  "
                f"{size(served.directory):6.1f} on disk  "
                + "  ".join(f"{n} {name}" for name, n in use.counts.items()),
                flush=True,
            )
        use.stop.set()
        for user in users:
            user.join()
    print(summary(looks))


if __name__ == "__main__":
    main()
