"""River's linear softmax on dictionaries of features, asked through a pipe like the others."""

from __future__ import annotations

import json
import sys
import time

import numpy as np


def main() -> None:
    """Learn as many samples as the parent asks for, and say how long it took."""
    from river import linear_model

    settings = json.loads(sys.stdin.readline())
    (d,), classes = settings["shape"], settings["classes"]
    random = np.random.default_rng(0)
    samples = [dict(enumerate(row)) for row in random.normal(size=(256, d)).tolist()]
    labels = random.integers(0, classes, 256).tolist()
    model = linear_model.SoftmaxRegression()
    print("ready", flush=True)
    at = 0
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            model.learn_one(samples[at % 256], labels[at % 256])
            at += 1
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
