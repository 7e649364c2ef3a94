"""What Ω divides by, given to runs that did not train it themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from verse.experiments.result import Bound, Result

Bounds = dict[tuple[int, ...], Bound]
"""The classes under test → the reference on them."""


def share_references(results: Iterable[Result]) -> list[Result]:
    """The same results; those without Offline take it from another run, where one has it.

    Offline depends on the data, the network, the seed and the classes under test, and not on the
    learner: one run of a grid may train it for all. A run takes it for all of its test events or
    for none.
    """
    found, known = list(results), dict[tuple[object, ...], Bounds]()
    for result in found:
        mine = known.setdefault(_key(result), {}) if result.offline else {}
        for event, bound in zip(result.events, result.offline, strict=False):
            mine.setdefault(tuple(sorted(event.classes)), bound)
    return [_lend(result, known.get(_key(result), {})) for result in found]


def _lend(result: Result, known: Bounds) -> Result:
    if result.offline or not known:
        return result
    bounds = [known.get(tuple(sorted(event.classes))) for event in result.events]
    there = [bound for bound in bounds if bound is not None]
    return replace(result, offline=tuple(there)) if len(there) == len(bounds) else result


def _key(result: Result) -> tuple[object, ...]:
    run = result.run
    return (
        *(result.fingerprint, run.backbone, result.circumstances.get("at", run.at)),
        *(run.weights, run.features, run.precision, run.batchnorm, run.seed),
    )
