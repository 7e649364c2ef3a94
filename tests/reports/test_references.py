"""Runs without Offline take it from another of the same data, network and seed."""

from __future__ import annotations

from dataclasses import replace

from verse.evaluate import Tested
from verse.experiments.result import Bound, Result
from verse.experiments.run import Run
from verse.reports.references import share_references


def result(learner: str, *, bounds: bool = False, **fields: object) -> Result:
    events = tuple(
        Tested(4 * k, list(range(k)), 0.5, [], [[0, 2, 4]], [], seconds=0.0) for k in (1, 2)
    )
    given = tuple(Bound(0.8 + k / 10, [], 1, True, {}) for k in (0, 1)) if bounds else ()
    return Result(
        run=Run("tabletop", learner, offline=bounds, **fields),
        classes=("a", "b"),
        split="",
        fingerprint="f",
        frames=8,
        test_frames=4,
        events=events,
        offline=given,
        learned=8,
        refused=0,
        missed=0,
        unreadable=0,
        learn_seconds=1.0,
        seconds=1.0,
        capacity=1,
        memory_bytes=1,
        settings={},
        circumstances={"at": "grid"},
    )


def test_one_run_trains_for_all() -> None:
    mean, verse, other = share_references(
        [result("ncm", bounds=True), result("verse"), result("verse", seed=1)]
    )
    assert verse.offline == mean.offline
    assert verse.omega_all == (0.5 / 0.8 + 0.5 / 0.9) / 2
    assert not other.offline  # another seed: other start weights, another order of classes


def test_all_events_or_none() -> None:
    longer = result("verse")
    more = replace(longer.events[0], classes=[0, 1, 2])
    longer = replace(longer, events=(*longer.events, more))
    assert not share_references([result("ncm", bounds=True), longer])[1].offline


def test_other_data_lend_nothing() -> None:
    far = replace(result("verse"), fingerprint="g")
    split = replace(result("verse"), circumstances={"at": "head"})
    both = share_references([result("ncm", bounds=True), far, split])[1:]
    assert not any(each.offline for each in both)
