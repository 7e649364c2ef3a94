"""A million lessons and ten thousand classes on features of 64 values: is anything not flat?

python benchmarks/scale.py                    # about ten minutes on an idle core, with progress
python benchmarks/scale.py --lessons 20000 --classes 1000

Times are processor time of one thread, so that other programs hardly change them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import click
import numpy as np
import torch
from torch import Tensor

import verse.memory
from verse import backbones, learners
from verse.benchmarks.growth import resident_bytes
from verse.configuration import DEFAULT_LEARNER, DEFAULT_MEMORY
from verse.learners import Learner

D, PIECES, REPEATS, BUDGET = 64, 20, 200, 3_000_000


class Stream:
    """Samples around a centre for every class, and a learner that is taught them."""

    def __init__(self, name: str, classes: int) -> None:
        self.random = torch.Generator().manual_seed(0)
        self.centres = 3 * torch.randn(classes, D, generator=self.random)
        self.labels = np.random.default_rng(0)
        memory = verse.memory.get(DEFAULT_MEMORY)(byte_limit=BUDGET)
        self.learner: Learner = learners.build(name, backbones.identity(D).F, memory)

    def sample(self, y: int) -> Tensor:
        return self.centres[y] + torch.randn(D, generator=self.random)

    def teach(self, y: int) -> float:
        """Seconds of processor time of one lesson."""
        return spend(lambda z: self.learner.learn_one(z, y), self.sample(y))

    def ask(self, y: int) -> float:
        return spend(self.learner.predict_one, self.sample(y))

    def draw(self) -> int:
        """Any class that was met."""
        return int(self.labels.integers(len(self.learner.labels)))


def spend(work: Callable[[Tensor], object], z: Tensor) -> float:
    start = time.process_time()
    work(z)
    return time.process_time() - start


def count_classes(name: str, most: int) -> dict[str, dict[str, float]]:
    """Number of classes → median milliseconds of a lesson, an answer and a new class."""
    stream, found = Stream(name, most), dict[str, dict[str, float]]()
    steps = [n for n in (100, 1_000, 10_000, 100_000) if n < most] + [most]
    for n in steps:
        new = [stream.teach(y) for y in range(len(stream.learner.labels), n)]
        lessons = [stream.teach(stream.draw()) for _ in range(REPEATS)]
        # in turn: the answer also takes in the lesson before it
        asked = [(stream.teach(stream.draw()), stream.ask(stream.draw())) for _ in range(REPEATS)]
        found[str(n)] = {
            "lesson_ms": 1e3 * float(np.median(lessons)),
            "answer_after_a_lesson_ms": 1e3 * float(np.median([answer for _, answer in asked])),
            "new_class_ms": 1e3 * float(np.median(new[-REPEATS:])),
            "resident_mb": resident_bytes() / 2**20,
        }
        click.echo(f"{name}, {n:,} classes: {json.dumps(found[str(n)])}", err=True)
    return found


def go_on(name: str, lessons: int, classes: int = 100) -> dict[str, float]:
    """Memory and time of a stream that goes on, once every class was met and memory is full."""
    stream = Stream(name, classes)
    for t in range(20_000 if lessons >= 100_000 else lessons // 5):
        stream.teach(t % classes)
    curve: list[tuple[int, int]] = []
    spent: list[float] = []
    piece = max(1, lessons // PIECES)
    for i in range(PIECES):
        spent.append(sum(stream.teach(stream.draw()) for _ in range(piece)) / piece)
        curve.append(((i + 1) * piece, resident_bytes()))
        click.echo(
            f"{name}: {curve[-1][0]:,} lessons, {1e3 * spent[-1]:.3f} ms a lesson, "
            f"{curve[-1][1] / 2**20:.0f} MiB",
            err=True,
        )
    half = curve[PIECES // 2 :]
    return {
        "lessons": lessons,
        "lesson_ms": 1e3 * float(np.mean(spent)),
        "last_over_first": float(np.mean(spent[-2:]) / np.mean(spent[:2])),
        "bytes_per_lesson": float(np.polyfit([t for t, _ in half], [b for _, b in half], 1)[0]),
        "resident_mb": curve[-1][1] / 2**20,
    }


@click.command()
@click.option("--learner", default=DEFAULT_LEARNER, show_default=True)
@click.option("--lessons", default=1_000_000, show_default=True)
@click.option("--classes", default=10_000, show_default=True)
def main(learner: str, lessons: int, classes: int) -> None:
    torch.set_num_threads(1)
    found = {"by_classes": count_classes(learner, classes), "going_on": go_on(learner, lessons)}
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
