"""How long a stream will take, from a few steps of a learner that is thrown away."""

from __future__ import annotations

import time

import numpy as np

from verse.evaluate import predict
from verse.experiments.execute import build_run_learner, in_order
from verse.experiments.prepare import Prepared
from verse.experiments.run import Run

STEPS = 48
SECONDS = 2.0  # at most, for the steps that are timed


def seconds_to_learn(run: Run, ready: Prepared) -> float:
    """About how long the learner takes for its stream and the tests on the way.

    Steps are timed on samples from all over the stream, without the first ones: with an empty
    memory they are too fast, and the first use of a network is too slow.
    """
    train, schedule = in_order(run, ready)
    learner = build_run_learner(run, ready, len(train))
    chosen = np.unique(np.linspace(0, len(train) - 1, STEPS).astype(np.int64))
    steps: list[float] = []
    began = time.perf_counter()
    for place in chosen:
        z, y = train.features(int(place), int(place) + 1)[0], int(train.y[place])
        at = time.perf_counter()
        learner.learn_one(z, y)
        steps.append(time.perf_counter() - at)
        if time.perf_counter() - began > SECONDS:
            break
    few = ready.test.take(np.arange(min(64, len(ready.test))))
    at = time.perf_counter()
    predict(learner, few)
    answer = (time.perf_counter() - at) / len(few)
    asked = len(schedule) * len(ready.test) / 2  # tests grow with the classes shown
    return float(np.median(steps[len(steps) // 3 :])) * len(train) + answer * asked
