"""What a user asks first: frames a second and megabytes of every learner on the default split."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from verse import learners, memory
from verse.backbones import Backbone
from verse.benchmarks import cases
from verse.benchmarks.cases import CLASSES
from verse.benchmarks.frame import teach_classifier
from verse.benchmarks.timing import alternate, once, ratio, summary
from verse.configuration import DEFAULT_LEARNER, DEFAULT_MEMORY
from verse.learners import Learner

BUDGET = 3_000_000
LESSONS, MEASURED = 60, 20
NOT_STREAMING = ("offline",)  # a bound: it keeps every sample and trains when asked


def measure(rounds: int) -> dict[str, Any]:
    """The default step against the one on ``head``, and a frame of every learner."""
    backbone = cases.build_case(cases.DEFAULT)
    files = cases.pictures()
    default = teach_classifier(cases.DEFAULT, backbone, files)
    Z = cases.features(backbone.F)
    head = cases.build_case(cases.HEAD).F
    Z_head = cases.features(head)
    ours, before = default.learner, cases.verse_learner(head, Z_head)
    turn = iter(range(10**9))

    def learn(learner: Learner, samples: Any, times: int) -> float:
        def work() -> None:
            for _ in range(times):
                t = next(turn)
                learner.learn_one(samples[t % len(samples)], t % CLASSES)

        return once(work) / times

    def learn_and_predict() -> None:
        default.learn_one(files[next(turn) % len(files)], 1)
        default.predict_one(files[next(turn) % len(files)])

    works: dict[str, Callable[[], float | object]] = {
        "step": lambda: learn(ours, Z, 10),
        "head": lambda: learn(before, Z_head, 1),
        "learn": lambda: default.learn_one(files[next(turn) % len(files)], 0),
        "learn_predict": learn_and_predict,
        "decode_and_G": lambda: backbone.G(files[:1]),
    }
    times = alternate(works, rounds)
    step, G = summary(times["step"])["median_ms"], summary(times["decode_and_G"])["median_ms"]
    assert ours.memory is not None
    return {
        "learner": DEFAULT_LEARNER,
        "at": backbone.at,
        "frames_per_second": 1e3 / summary(times["learn"])["median_ms"],
        "learn_predict_per_second": 1e3 / summary(times["learn_predict"])["median_ms"],
        "step_ms": step,
        "head_step_ms": summary(times["head"])["median_ms"],
        "step_speedup_vs_head": ratio(times["head"], times["step"])["median"],
        "decode_and_G_ms": G,
        "sample_bytes": ours.memory.item_bytes,
        "learners": {
            name: one(name, backbone, Z, G)
            for name in learners.names()
            if name not in NOT_STREAMING
        },
    }


def one(name: str, backbone: Backbone, Z: Any, G_ms: float) -> dict[str, float]:
    """Frames a second and bytes of one learner, with a memory of three megabytes."""
    learner = learners.build(name, backbone.F, memory.get(DEFAULT_MEMORY)(byte_limit=BUDGET))

    def lesson(t: int) -> None:
        learner.learn_one(Z[t % len(Z)], t % CLASSES)

    seconds = [once(partial(lesson, t)) for t in range(LESSONS)]
    step = summary(seconds[-MEASURED:])["median_ms"]
    state = {k: v for k, v in learner.state().items() if "field." not in k}
    held = sum(v.numel() * v.element_size() for v in state.values())
    return {
        "frames_per_second": 1e3 / (G_ms + step),
        "step_ms": step,
        "megabytes": (held + learner.memory_bytes) / 1e6,
    }
