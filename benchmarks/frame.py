"""The whole frame: decode + G + VERSE step, against decode + eager G + textbook step."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import torch
from PIL import Image
from step import CLASSES, STORED, textbook_learner
from textbook import TextbookPipeline
from timing import alternate, ratio, summary

from verse import backbones
from verse.classifier import StreamClassifier


def pictures(n: int = 8) -> list[bytes]:
    """JPEG files as a camera gives them: smooth with some texture."""
    random = np.random.default_rng(0)
    files = []
    for _ in range(n):
        small = random.integers(0, 256, (15, 20, 3), dtype=np.uint8)
        image = Image.fromarray(small).resize((320, 240), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        image.save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


def classifier_with_memory(backbone: backbones.Backbone, files: list[bytes]) -> StreamClassifier:
    # the method that the textbook step computes, whatever live classifiers take by default
    classifier = StreamClassifier(backbone=backbone, learner="verse", capacity=2 * STORED)
    Z = classifier.features(files)
    for y in range(CLASSES):
        classifier.learn_feature(Z[y % len(Z)], y)
    assert classifier.learner.memory is not None
    for t in range(CLASSES, STORED):
        classifier.learner.memory.add(classifier.learner._stored(Z[t % len(Z)])[0], t % CLASSES)
    return classifier


def measure(name: str, at: str | None, *, precision: str, rounds: int) -> dict[str, Any]:
    backbone = backbones.build(name, at=at, weights="random", precision=precision)
    plain = backbones.build(name, at=at, weights="random")
    files = pictures()
    ours = classifier_with_memory(backbone, files)
    Z = ours.features(files)
    textbook = TextbookPipeline(
        plain.G.preprocess,
        plain.G.network,  # type: ignore[attr-defined]
        textbook_learner(plain.F, Z[torch.arange(STORED) % len(Z)]),
    )
    turn = iter(range(10**9))

    def frame(learner: Any) -> None:
        t = next(turn)
        learner.learn_one(files[t % len(files)], t % CLASSES)

    def overlapped() -> float:
        import time

        start = time.perf_counter()
        ours.learn_many(files, [t % CLASSES for t in range(len(files))], overlap=True)
        return (time.perf_counter() - start) / len(files)

    times = alternate(
        {
            "verse": lambda: frame(ours),
            "textbook": lambda: frame(textbook),
            "overlapped": overlapped,
            "decode": lambda: backbone.G.preprocess(files[0]),
            "G": lambda: backbone.G(files[:1]),
        },
        rounds,
    )
    speedup = ratio(times["textbook"], times["verse"])
    verse, together = summary(times["verse"]), summary(times["overlapped"])
    return {
        "at": backbone.at,
        "engine": backbone.G.engine,
        "speedup_vs_textbook": speedup["median"],
        "speedup_spread": [speedup["quartile_low"], speedup["quartile_high"]],
        "frames_per_second": 1e3 / min(verse["median_ms"], together["median_ms"]),
        "verse": verse,
        "verse_overlapped": together,
        "textbook": summary(times["textbook"]),
        "decode": summary(times["decode"]),
        "decode_and_G": summary(times["G"]),
    }
