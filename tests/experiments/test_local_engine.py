"""Worker processes: equal bits wherever a run lands, and faults that stay where they are."""

from __future__ import annotations

import multiprocessing
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verse.experiments import Result, Run, execute, local_engine
from verse.experiments.engine import Task
from verse.experiments.grid import ATTEMPTS, GridOutcome, drive, plan_tasks
from verse.experiments.line import encode
from verse.experiments.local_engine import LocalEngine
from verse.experiments.store import Store

Toy = Callable[..., Run]
TIMES = ("seconds", "learn_seconds", "test_seconds")


def work(runs: list[Run], folder: Path, jobs: int) -> GridOutcome:
    store = Store(folder)
    return drive(plan_tasks(runs, store), LocalEngine(jobs), store, lambda *_: None)


def numbers(result: Result) -> dict[str, Any]:
    """Everything but how long it took."""
    return {key: value for key, value in encode(result).line.items() if key not in TIMES}


@pytest.mark.slow
def test_results_do_not_depend_on_the_worker_or_the_order(toy: Toy, tmp_path: Path) -> None:
    runs = [
        toy(learner=name, order=order, offline=True)
        for name in ("verse", "gdumb", "remind", "slda")
        for order in ("class-iid", "instance")
    ]
    work(runs, tmp_path / "results", jobs=2)
    found = {result.id: result for result in Store(tmp_path / "results").results()}
    for run in runs[::-1]:  # the other way round, in this process
        assert numbers(execute(run, threads=1)) == numbers(found[run.id])


@pytest.mark.slow
def test_faults_stay_where_they_are(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERSE_TOY_MARK", str(tmp_path / "mark"))
    failing, dies_once, dying = (
        toy(learner=f"verse_toy_faults.{name}") for name in ("Failing", "DiesOnce", "Dying")
    )
    good = [toy(seed=seed) for seed in range(3)]
    outcome = work([dying, failing, dies_once, *good], tmp_path / "results", jobs=2)
    assert set(outcome.done) == {dies_once.id, *(run.id for run in good)}
    assert set(outcome.failed) == {failing.id, dying.id}
    assert "the tenth sample was too much" in outcome.failed[failing.id]
    assert "Traceback" in outcome.failed[failing.id]
    assert outcome.failed[dying.id] == "its process ended with signal 9"
    assert (tmp_path / "mark").exists()
    assert ATTEMPTS > 1


def test_a_worker_that_dies_in_the_middle_of_a_report_is_lost() -> None:
    """What it has sent says how long the report is, and then no more comes."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process()
    process.start()
    engine = LocalEngine(1)
    engine.workers.append(local_engine.LocalWorker(process, ours, Task("some", "run", ())))
    os.write(theirs.fileno(), struct.pack("!i", 20_000) + b"half")
    theirs.close()
    (report,) = engine.wait(60)
    assert (report.task, report.kind) == ("some", "lost")
    assert engine.free == 1
