"""Answers while learning: a reader follows the writer and answers from its own copy."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from verse.benchmarks import cases
from verse.benchmarks.cases import CLASSES
from verse.benchmarks.frame import teach_classifier
from verse.benchmarks.timing import once, percentile
from verse.classifier import StreamClassifier


def measure(case: str, *, precision: str, rounds: int) -> dict[str, Any]:
    """Idle and busy in turns; half the cores for G, as the service has it."""
    threads = max(1, (os.cpu_count() or 2) // 2)
    backbone = cases.build_case(case, precision=precision, threads=threads)
    files = cases.pictures()
    writer = teach_classifier(case, backbone, files)
    reader = StreamClassifier(backbone=backbone, learner=writer.learner_name).learner
    reader.follow(writer.learner)
    image, Z = backbone.G.preprocess(files[0]), writer.features(files)

    def answer() -> None:
        reader.predict_proba_one(backbone.G.run(image[None])[0])

    learning, stop = threading.Event(), threading.Event()

    def learn() -> None:
        t = 0
        while not stop.is_set():
            if not learning.wait(0.1):
                continue
            writer.learn_feature(Z[t % len(Z)], t % CLASSES)
            t += 1

    for _ in range(3):
        answer()
    idle: list[float] = []
    busy: list[float] = []
    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for turn in range(8):  # so that whatever else the machine does meets both
            now = busy if turn % 2 else idle
            (learning.set if turn % 2 else learning.clear)()
            time.sleep(0.05)
            for _ in range(max(1, rounds // 4)):
                now.append(once(answer))
                time.sleep(0.01)
    finally:
        stop.set()
        thread.join()
    published = [once(lambda: reader.follow(writer.learner)) for _ in range(5)]
    return {
        "threads": threads,
        "p50_ms": 1e3 * percentile(idle, 0.5),
        "p95_ms": 1e3 * percentile(idle, 0.95),
        "p50_while_learning_ms": 1e3 * percentile(busy, 0.5),
        "p95_while_learning_ms": 1e3 * percentile(busy, 0.95),
        "p95_while_learning_over_idle": percentile(busy, 0.95) / percentile(idle, 0.95),
        "publish_ms": 1e3 * percentile(published, 0.5),
    }
