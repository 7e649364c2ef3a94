"""Results made by hand, for what real runs cannot be asked to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from verse.evaluate import Tested
from verse.experiments.result import Bound, Result
from verse.experiments.run import Run
from verse.learners import defaults

FRAMES = 100  # of each test video


def made(
    learner: str,
    seed: int,
    right: Sequence[float],
    bound: Sequence[float] | None = None,
    *,
    dataset: str = "tabletop",
    data: str = "somewhere",
    holds: int = 20,
    **record: Any,
) -> Result:
    """A run of two equal test events; ``right`` is the share of right answers by test video.

    Offline is always right, unless ``bound`` says otherwise; an empty one means no Offline.
    """
    run = Run(dataset, learner=learner, seed=seed, **record)
    bounds = [1.0] * len(right) if bound is None else bound
    rows, best = (
        [[v, round(FRAMES * share), FRAMES] for v, share in enumerate(shares)]
        for shares in (right, bounds)
    )
    events = tuple(
        Tested(after, [0, 1], sum(row[1] for row in rows) / (FRAMES * len(rows)), [], rows, [], 0.1)
        for after in (50, 100)
    )
    offline = ()
    if best:
        accuracy = sum(row[1] for row in best) / (FRAMES * len(best))
        offline = (Bound(accuracy, best, 10, True, {"ridge": 0.9, "lda": 0.8}),) * 2
    return Result(
        run=replace(run, offline=bool(best)),
        classes=("cup", "mug"),
        split="by hand",
        fingerprint=data,
        frames=100,
        test_frames=FRAMES * len(rows),
        events=events,
        offline=offline,
        learned=100,
        refused=0,
        missed=0,
        unreadable=0,
        learn_seconds=1.0,
        seconds=2.0,
        capacity=holds,
        memory_bytes=4000,
        settings=defaults(learner) | record.get("settings", {}),
        circumstances={},
    )
