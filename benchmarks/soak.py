"""Use a server for a long time: teach, ask, listen, undo, rename, forget; memory must stay flat.

python -m benchmarks.soak [--minutes 10]
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.load import frame
from verse.serve.client import Client, ServiceError


def resident(pid: int) -> float:
    """Memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def size(directory: Path) -> float:
    return sum(f.stat().st_size for f in directory.iterdir()) / 2**20


def use(url: str, stop: threading.Event, counts: dict[str, int]) -> None:
    """One restless user."""
    frames = [frame(i) for i in range(24)]
    with Client(url) as client:
        for i in itertools.count():
            if stop.is_set():
                return
            seq = client.learn(frames[i % 24], f"class {i % 8}")["seq"]
            counts["learned"] += 1
            if i % 50 == 49:
                client.undo(seq)
                counts["undone"] += 1
            if i % 100 == 99:
                client.rename("class 1", "other")
                client.rename("other", "class 1")
            if i == 199:  # once: each new class after it has an output and a budget of its own
                client.forget("class 7")
                counts["forgotten"] += 1


def ask(url: str, stop: threading.Event, counts: dict[str, int]) -> None:
    frames = [frame(i) for i in range(24)]
    with Client(url) as client:
        while not stop.is_set():
            client.predict(frames[counts["asked"] % 24])
            client.classes()
            counts["asked"] += 1
            time.sleep(0.02)


def listen(url: str, stop: threading.Event, counts: dict[str, int]) -> None:
    while not stop.is_set():
        with Client(url) as client:
            try:
                for _ in client.events():
                    counts["heard"] += 1
                    if stop.is_set():
                        return
                    if counts["heard"] % 200 == 0:
                        break  # listeners come and go
            except ServiceError:
                counts["errors"] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "taught"
        server = subprocess.Popen(
            [sys.executable, "-m", "verse.cli", "serve", str(directory), "--port", "0",
             "--rate", "0"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )  # fmt: skip
        assert server.stderr is not None
        url = server.stderr.readline().split()[-1]
        stop = threading.Event()
        counts = dict.fromkeys(("learned", "asked", "heard", "undone", "forgotten", "errors"), 0)
        users = [threading.Thread(target=f, args=(url, stop, counts)) for f in (use, ask, listen)]
        for user in users:
            user.start()
        begin, seen = time.monotonic(), []
        while time.monotonic() - begin < options.minutes * 60:
            time.sleep(min(10.0, options.minutes * 6))
            seen.append((time.monotonic() - begin, resident(server.pid), size(directory)))
            print(
                f"{seen[-1][0]:6.0f} s  {seen[-1][1]:7.1f} MiB  {seen[-1][2]:6.1f} MiB on disk  "
                + "  ".join(f"{n} {name}" for name, n in counts.items()),
                flush=True,
            )
        stop.set()
        for user in users:
            user.join()
        server.terminate()
        assert server.wait(60) in (0, -15)
        server.stderr.close()
    # a checkpoint in the making needs room for a moment: what stays is the least of many looks
    third = seen[-1][0] / 3
    middle = min(m for t, m, _ in seen if third < t <= 2 * third)
    end = min(m for t, m, _ in seen if t > 2 * third)
    print(f"least memory in the middle third {middle:.1f} MiB, in the last {end:.1f} MiB")


if __name__ == "__main__":
    main()
