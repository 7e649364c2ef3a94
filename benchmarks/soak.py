"""Use a server for a long time: teach, ask, listen, undo, rename, forget; memory must stay flat.

    python -m benchmarks.soak [--minutes 15]

Every 400 samples a class is forgotten for good and then taught again. Memory is looked at every few
seconds; it must not follow the number of requests once the server has seen all kinds of them.
"""

from __future__ import annotations

import argparse
import itertools
import os
import threading
import time
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


def summary(seen: list[tuple[float, float, int]]) -> str:
    """What memory did: (seconds, MiB, requests) of every look."""
    end = seen[-1][0]
    parts = [[m for t, m, _ in seen if end * k / 3 <= t <= end * (k + 1) / 3] for k in range(3)]
    lines = [
        f"{name} third: least {min(part):.1f} MiB, median {np.median(part):.1f} MiB"
        for name, part in zip(("first", "middle", "last"), parts, strict=True)
    ]
    late = [(n, m) for t, m, n in seen if t > end / 3]
    thousands, memory = np.array([n / 1000 for n, _ in late]), np.array([m for _, m in late])
    # a checkpoint in the making needs room for a moment, so single looks differ by some MiB
    fit, covariance = np.polyfit(thousands, memory, 1, cov=True)
    lines.append(
        f"slope of the last two thirds: {fit[0]:+.2f} ± {covariance[0, 0] ** 0.5:.2f} MiB "
        f"per 1,000 requests ({1000 * (thousands[-1] - thousands[0]):.0f} requests)"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    options = parser.parse_args()
    with server() as served:
        use = Use(served.url)
        users = [
            threading.Thread(target=use.guarded, args=(work,))
            for work in (use.teach, use.ask, use.listen)
        ]
        for user in users:
            user.start()
        begin, seen = time.monotonic(), []
        while (now := time.monotonic() - begin) < options.minutes * 60:
            time.sleep(min(5.0, options.minutes * 2))
            seen.append((now, resident(served.pid), use.counts["requests"]))
            print(
                f"{now:6.0f} s  {seen[-1][1]:7.1f} MiB  {size(served.directory):6.1f} MiB on disk  "
                + "  ".join(f"{n} {name}" for name, n in use.counts.items()),
                flush=True,
            )
        use.stop.set()
        for user in users:
            user.join()
    print(summary(seen))


if __name__ == "__main__":
    main()
