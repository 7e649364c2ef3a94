"""Two or more things timed in turn, so that whatever else the machine does meets all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def once(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternate(
    works: Mapping[str, Callable[[], float | object]], rounds: int, warm: int = 2
) -> dict[str, list[float]]:
    """Seconds of every work in every round. A work may return its own seconds (a child does)."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(warm + rounds):
        for name, work in works.items():
            start = time.perf_counter()
            told = work()
            seconds = told if isinstance(told, float) else time.perf_counter() - start
            if turn >= warm:
                times[name].append(seconds)
    return times


def summary(seconds: list[float]) -> dict[str, float]:
    """Median and quartiles in milliseconds."""
    low, middle, high = quartiles([1e3 * s for s in seconds])
    return {"median_ms": middle, "quartile_low_ms": low, "quartile_high_ms": high}


def ratio(above: list[float], below: list[float]) -> dict[str, float]:
    """Median and quartiles of the ratios within each round."""
    low, middle, high = quartiles([a / b for a, b in zip(above, below, strict=True)])
    return {"median": middle, "quartile_low": low, "quartile_high": high}


def quartiles(values: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def percentile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]
