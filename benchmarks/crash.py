"""Teach a server that is killed with -9 at random moments.

    python benchmarks/crash.py [--kills 200] [--seconds 4] [--at LAYER]

Four clients teach at once, each lesson with its own key. After every kill the server starts again
on the same directory. At the end: every acknowledged lesson is there under its number, no lesson
was learned twice, and weights and memory are bit-identical to those of a plain loop over the
lessons in the order of their numbers. Processes are forked, which makes a start cheap; the kill,
the files and the recovery are the real ones.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import torch
import uvicorn
from PIL import Image

import verse
from verse import StreamClassifier, backbones
from verse.backbones import Backbone
from verse.serve.app import create_app
from verse.serve.client import Client, ServiceError
from verse.serve.limits import Limits
from verse.serve.session import Session

PICTURES, CLIENTS = 40, 4


def pictures() -> list[tuple[bytes, str]]:
    """Noisy squares of five colours, as JPEG, each with its label."""
    made = []
    for i in range(PICTURES):
        rng = np.random.default_rng(i)
        colour = np.random.default_rng(i % 5).integers(30, 220, 3)
        pixels = np.clip(colour + rng.integers(-30, 30, (96, 128, 3)), 0, 255)
        file = io.BytesIO()
        Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG")
        made.append((file.getvalue(), f"class {i % 5}"))
    return made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(directory: Path, backbone: Backbone, port: int) -> int:
    """A server in a process of its own; its process id."""
    child = os.fork()
    if child:
        return child
    try:
        session = Session(verse.open(directory, backbone=backbone))
        app = create_app(session, limits=Limits(rate=0))
        uvicorn.run(app, port=port, log_level="critical")
    finally:
        os._exit(1)


class Teachers:
    """Clients that teach lesson after lesson and write down what was acknowledged."""

    def __init__(self, taught: list[tuple[bytes, str]]) -> None:
        self.taught = taught
        self.next = 0
        self.open: list[int] = []  # sent, answer unknown: to be sent again
        self.acknowledged: dict[int, int] = {}
        self.repeated = 0
        self._lock = threading.Lock()

    def take(self) -> int:
        with self._lock:
            if self.open:
                self.repeated += 1
                return self.open.pop(0)
            self.next += 1
            return self.next - 1

    def teach(self, port: int) -> None:
        """One client, until the server is gone."""
        with Client(f"http://127.0.0.1:{port}", retries=0, timeout=60) as client:
            while True:
                lesson = self.take()
                image, label = self.taught[lesson % PICTURES]
                try:
                    seq = client.learn(image, label, key=f"lesson {lesson}")["seq"]
                except ServiceError as error:
                    with self._lock:
                        self.open.append(lesson)
                    if error.code is None:
                        return
                    raise
                assert self.acknowledged.setdefault(lesson, seq) == seq


def ready(port: int) -> float:
    begin = time.monotonic()
    with Client(f"http://127.0.0.1:{port}", retries=0) as client:
        while time.monotonic() - begin < 120:
            try:
                client.status()
                return time.monotonic() - begin
            except ServiceError:
                time.sleep(0.02)
    raise AssertionError("the server does not come back")


def verify(directory: Path, backbone: Backbone, teachers: Teachers) -> tuple[int, str]:
    """Compare with a clean run; how many samples there are, and the method that learned them."""
    with verse.open(directory, backbone=backbone) as again:
        order: dict[int, int] = {}
        for lesson in range(teachers.next):
            seq = again.seq_of(f"lesson {lesson}")
            if seq is not None:
                assert seq not in order, "two lessons under one number"
                order[seq] = lesson
            acknowledged = teachers.acknowledged.get(lesson)
            assert acknowledged is None or acknowledged == seq, f"lesson {lesson} is lost"
        assert again.samples == len(order), "a lesson was learned twice"
        features = backbone.G([image for image, _ in teachers.taught])
        clean = StreamClassifier(backbone=backbone)
        for seq in sorted(order):
            which = order[seq] % PICTURES
            clean.learn_feature(features[which], teachers.taught[which][1])
        a, b = again.learner.state(), clean.learner.state()
        assert a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a), "bits differ"
        return again.samples, again.learner_name


def crash(
    directory: Path, kills: int, seconds: float, seed: int, backbone: Backbone
) -> tuple[Teachers, list[float]]:
    """Kill so often; what was taught, and the seconds until each server was there."""
    rng = np.random.default_rng(seed)
    teachers, begin = Teachers(pictures()), time.monotonic()
    recoveries: list[float] = []
    clients: list[threading.Thread] = []
    for kill in range(kills):
        port = free_port()
        server = start(directory, backbone, port)
        try:
            if rng.random() < 0.1:  # also while it recovers
                time.sleep(float(rng.uniform(0, 0.3)))
            else:
                recoveries.append(ready(port))
                clients = [
                    threading.Thread(target=teachers.teach, args=(port,)) for _ in range(CLIENTS)
                ]
                for client in clients:
                    client.start()
                time.sleep(float(rng.uniform(0, seconds)))
        finally:
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)
        for client in clients:
            client.join()
        if (kill + 1) % 20 == 0:
            print(
                f"{kill + 1} kills, {len(teachers.acknowledged)} acknowledged, "
                f"{teachers.repeated} sent again, back after "
                f"{np.median(recoveries):.2f} s (median), {time.monotonic() - begin:.0f} s",
                flush=True,
            )
    return teachers, recoveries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=4, help="the longest life of a server")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at", help="the first plastic layer [default: that of the backbone]")
    options = parser.parse_args()
    torch.set_num_threads(1)
    backbone = backbones.build("efficientnet-lite0", at=options.at, threads=1)
    warm = StreamClassifier(backbone=backbone)  # torch loads much with its first step
    warm.learn_one(pictures()[0][0], "any")
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place) / "taught"
        teachers, recoveries = crash(
            directory, options.kills, options.seconds, options.seed, backbone
        )
        samples, learner = verify(directory, backbone, teachers)
    print(
        f"{options.kills} kills, {learner} on {backbone.name} at {backbone.at}: "
        f"{len(teachers.acknowledged)} lessons acknowledged, none lost; "
        f"{samples} learned, none twice ({teachers.repeated} were sent again); "
        "weights and memory bit-identical to a clean run; "
        f"back after {np.median(recoveries):.2f} s (median), {max(recoveries):.2f} s (most)"
    )


if __name__ == "__main__":
    main()
