"""What does `ask` cost beside `predict`? A figure of docs/trust.md.

    python -m benchmarks.ask [--trials 200]

Both answer from the same feature, in turn, so that a busy machine slows down both; what `ask` does
besides is the look at the pixels, which is timed by itself. The features are random around class
means: what is measured does not depend on them. The extra is the median over trials of the
difference.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from verse import StreamClassifier
from verse.images import shows_nothing

Values = npt.NDArray[np.floating[Any]]
CASES = ((8, 200), (43, 215), (200, 400))  # classes, samples


def time_once(do: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds by the clock, and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    do()
    return 1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - processor)


def draw(means: Values, i: int, random: np.random.Generator) -> torch.Tensor:
    noise = random.random(means.shape[1:], np.float32)
    return torch.from_numpy(means[i % len(means)] + noise / 3)


def measure(classes: int, samples: int, trials: int) -> Values:
    """Medians: predict, ask, what it takes longer, and the same in time of the processor."""
    classifier, random = StreamClassifier(), np.random.default_rng(0)
    means = random.random((classes, *classifier.learner.F.z_shape), np.float32)
    for i in range(samples):
        classifier.learn_feature(draw(means, i, random), i % classes)
    times = []
    for i in range(trials):
        z = draw(means, i, random)
        pixels = random.integers(0, 256, (224, 224, 3), dtype=np.uint8)
        before = time_once(partial(classifier.predict_feature, z))
        after = time_once(partial(classifier.ask_feature, z))
        look = time_once(partial(shows_nothing, pixels))
        ask = [a + b for a, b in zip(after, look, strict=True)]
        times.append((before[0], ask[0], ask[0] - before[0], ask[1] - before[1]))
    return np.median(times, 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    trials = parser.parse_args().trials
    print("| classes | predict | ask | extra | extra, processor |\n|--:|--:|--:|--:|--:|")
    for classes, samples in CASES:
        cells = " | ".join(f"{value:.2f} ms" for value in measure(classes, samples, trials))
        print(f"| {classes} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
