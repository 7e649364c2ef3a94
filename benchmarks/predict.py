"""Answers while learning: a reader follows the writer and answers from its own copy."""

from __future__ import annotations

import threading
import time
from typing import Any

from frame import classifier_with_memory, pictures
from timing import once, percentile

from verse import backbones, learners
from verse.memory import Reservoir


def measure(name: str, at: str | None, *, precision: str, rounds: int) -> dict[str, Any]:
    backbone = backbones.build(name, at=at, weights="random", precision=precision)
    files = pictures()
    writer = classifier_with_memory(backbone, files)
    reader = learners.VERSE(backbone.F, Reservoir(1))
    reader.follow(writer.learner)
    image = backbone.G.preprocess(files[0])

    def answer() -> None:
        reader.predict_proba_one(backbone.G.run(image[None])[0])

    for _ in range(3):
        answer()
    idle = [once(answer) for _ in range(rounds)]
    stop = threading.Event()
    published: list[float] = []

    def learn() -> None:
        t = 0
        Z = writer.features(files)
        while not stop.is_set():
            writer.learn_feature(Z[t % len(Z)], t % 10)
            t += 1

    thread = threading.Thread(target=learn)
    thread.start()
    busy = []
    try:
        for _ in range(rounds):
            busy.append(once(answer))
            time.sleep(0.01)
    finally:
        stop.set()
        thread.join()
    for _ in range(5):
        published.append(once(lambda: reader.follow(writer.learner)))
    return {
        "p50_ms": 1e3 * percentile(idle, 0.5),
        "p95_ms": 1e3 * percentile(idle, 0.95),
        "p50_while_learning_ms": 1e3 * percentile(busy, 0.5),
        "p95_while_learning_ms": 1e3 * percentile(busy, 0.95),
        "p95_while_learning_over_idle": percentile(busy, 0.95) / percentile(idle, 0.95),
        "publish_ms": 1e3 * percentile(published, 0.5),
    }
