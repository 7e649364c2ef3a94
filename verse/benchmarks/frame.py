"""The whole frame: decode + G + step, against decode + eager G + textbook step."""

from __future__ import annotations

import time
from typing import Any

import torch

from verse.backbones import Backbone
from verse.backbones.extractor import FrozenNetwork
from verse.benchmarks import cases
from verse.benchmarks.cases import CLASSES, STORED
from verse.benchmarks.step import textbook_learner
from verse.benchmarks.textbook import TextbookPipeline
from verse.benchmarks.timing import alternate, ratio, summary
from verse.classifier import StreamClassifier
from verse.configuration import DEFAULT_LEARNER


def teach_classifier(case: str, backbone: Backbone, files: list[bytes]) -> StreamClassifier:
    """A classifier with ten classes: by the default learner on the default split, else by VERSE,
    which is what the textbook step computes."""
    learner = DEFAULT_LEARNER if case == cases.DEFAULT else "verse"
    classifier = StreamClassifier(backbone=backbone, learner=learner)
    Z = classifier.features(files)
    for t in range(max(CLASSES, STORED if case == cases.DEFAULT else 0)):
        classifier.learn_feature(Z[t % len(Z)], t % CLASSES)
    memory = classifier.learner.memory
    if memory is not None:
        for t in range(len(memory), STORED):
            memory.add(classifier.learner.F.stored(Z[t % len(Z)])[0], t % CLASSES)
    return classifier


def textbook_pipeline(case: str, files: list[bytes]) -> TextbookPipeline:
    """Plain code on the split of the case; for the default on the split that was it before."""
    plain = cases.build_case(cases.HEAD if case == cases.DEFAULT else case)
    assert isinstance(plain.G, FrozenNetwork)
    Z = plain.G(files)
    learner = textbook_learner(plain.F, Z[torch.arange(STORED) % len(Z)])
    return TextbookPipeline(plain.G.preprocess, plain.G.network, learner)


def measure(case: str, *, precision: str, rounds: int) -> dict[str, Any]:
    """Ours and the textbook's in turns, and what of it is decode and G."""
    files = cases.pictures()
    backbone = cases.build_case(case, precision=precision)
    ours, textbook = teach_classifier(case, backbone, files), textbook_pipeline(case, files)
    turn = iter(range(10**9))

    def frame(learner: Any) -> None:
        t = next(turn)
        learner.learn_one(files[t % len(files)], t % CLASSES)

    def learn_and_predict() -> None:
        frame(ours)
        ours.predict_one(files[next(turn) % len(files)])

    def time_overlap() -> float:
        start = time.perf_counter()
        ours.learn_many(files, [t % CLASSES for t in range(len(files))], overlap=True)
        return (time.perf_counter() - start) / len(files)

    times = alternate(
        {
            "verse": lambda: frame(ours),
            "textbook": lambda: frame(textbook),
            "overlapped": time_overlap,
            "learn_and_predict": learn_and_predict,
            "decode": lambda: backbone.G.preprocess(files[0]),
            "G": lambda: backbone.G(files[:1]),
        },
        rounds,
    )
    speedup = ratio(times["textbook"], times["verse"])
    verse, together = summary(times["verse"]), summary(times["overlapped"])
    in_turn = summary(times["learn_and_predict"])
    return {
        "at": backbone.at,
        "engine": backbone.G.engine,
        "learner": ours.learner_name,
        "speedup_vs_textbook": speedup["median"],
        "speedup_spread": [speedup["quartile_low"], speedup["quartile_high"]],
        "frames_per_second": 1e3 / min(verse["median_ms"], together["median_ms"]),
        "learn_predict_per_second": 1e3 / in_turn["median_ms"],
        "verse": verse,
        "verse_overlapped": together,
        "learn_and_predict": in_turn,
        "textbook": summary(times["textbook"]),
        "decode": summary(times["decode"]),
        "decode_and_G": summary(times["G"]),
    }
