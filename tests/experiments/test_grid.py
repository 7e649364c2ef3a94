"""The plan of a grid, its loop, and the store: with an engine that only pretends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from verse.cli.grid_live import labels
from verse.experiments import Run, execute
from verse.experiments.engine import Task, TaskReport
from verse.experiments.grid import ATTEMPTS, drive, plan_tasks
from verse.experiments.line import Entry, encode
from verse.experiments.store import Store
from verse.experiments.timing import Timing

Toy = Callable[..., Run]


class Pretend:
    """Answers every task as told; keeps what was asked."""

    def __init__(self, answers: dict[str, list[str]] | None = None, entry: Entry | None = None):
        self.answers, self.entry = answers or {}, entry
        self.asked: list[Task] = []
        self.now: list[Task] = []
        self.width = 2
        self.stopped = False

    @property
    def free(self) -> int:
        return self.width - len(self.now)

    def submit(self, task: Task) -> None:
        self.asked.append(task)
        self.now.append(task)

    def wait(self, seconds: float) -> Sequence[TaskReport]:
        reports = []
        for task in self.now:
            kind = self.answers.get(task.id, ["done"])
            answer = kind.pop(0) if len(kind) > 1 else kind[0]
            entry = self.entry if task.kind == "run" and answer == "done" else None
            reports += [TaskReport(task.id, answer, "why", entry=entry)]
        self.now = []
        return reports

    def stop(self) -> None:
        self.stopped = True


def test_features_then_offline_then_runs(toy: Toy, tmp_path: Path) -> None:
    runs = [
        toy(learner=learner, order=order, seed=seed, offline=True)
        for seed in (0, 1)
        for learner in ("verse", "ncm")
        for order in ("class-iid", "class-instance", "iid")
    ]
    tasks = plan_tasks(runs, Store(tmp_path))
    kinds = [task.kind for task in tasks]
    assert (kinds.count("features"), kinds.count("offline"), kinds.count("run")) == (1, 2, 12)
    offline = [task for task in tasks if task.kind == "offline"]
    # one for both class orderings, one for iid
    assert [[r["order"] for r in task.records] for task in offline] == [["class-iid", "iid"]] * 2
    engine = Pretend()
    drive(tasks, engine, Store(tmp_path), lambda *_: None)
    place = {task.id: i for i, task in enumerate(engine.asked)}
    assert all(place[first] < place[task.id] for task in tasks for first in task.after)
    assert engine.stopped


def test_only_what_is_missing(toy: Toy, tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = toy()
    store.add(encode(execute(run)))
    assert plan_tasks([run], store) == []
    assert [t.id for t in plan_tasks([run, toy(seed=1)], store) if t.kind == "run"] == [
        toy(seed=1).id
    ]


def test_a_failed_task_holds_nobody_up(toy: Toy, tmp_path: Path) -> None:
    good, bad = toy(), toy(seed=1)
    engine = Pretend({bad.id: ["failed"]}, encode(execute(good)))
    outcome = drive(
        plan_tasks([bad, good], Store(tmp_path)), engine, Store(tmp_path), lambda *_: None
    )
    assert (outcome.done, outcome.failed) == ([good.id], {bad.id: "why"})
    assert Store(tmp_path).ids() == {good.id}


def test_a_lost_task_is_tried_again_but_not_for_ever(toy: Toy, tmp_path: Path) -> None:
    once, always = toy(), toy(seed=1)
    engine = Pretend({once.id: ["lost", "done"], always.id: ["lost"]}, encode(execute(once)))
    told: list[tuple[str, str]] = []
    outcome = drive(
        plan_tasks([once, always], Store(tmp_path)),
        engine,
        Store(tmp_path),
        lambda task, report: told.append((task.id, report.kind)),
    )
    asked = [task.id for task in engine.asked]
    assert (asked.count(once.id), asked.count(always.id)) == (2, ATTEMPTS)
    assert (outcome.done, list(outcome.failed)) == ([once.id], [always.id])
    assert [kind for task, kind in told if task == always.id] == ["lost", "lost", "failed"]


def test_a_cluster_that_shrinks_is_not_given_everything(toy: Toy, tmp_path: Path) -> None:
    """Less than no room: more tasks are running than there are processors left."""
    runs = [toy(seed=seed) for seed in range(9)]

    class Shrinking(Pretend):
        most = 0

        def submit(self, task: Task) -> None:
            super().submit(task)
            self.most = max(self.most, len(self.now))
            self.width = 2 if len(self.asked) < 4 else 1  # a machine leaves while two tasks run

    engine = Shrinking(entry=encode(execute(runs[0])))
    drive(plan_tasks(runs, Store(tmp_path)), engine, Store(tmp_path), lambda *_: None)
    assert engine.most == 2


def test_the_live_table_tells_what_varies_apart(toy: Toy) -> None:
    runs = [
        toy(seed=seed, capacity=size, settings={"beta": beta, "r": 0.4})
        for seed in (0, 1)
        for size in ("4%", "20")
        for beta in (0.01, 0.03)
    ]
    runs.append(toy(learner="ncm"))
    found = labels(runs)
    assert set(found.values()) == {
        "ncm",
        *(f"verse beta={b} capacity={c}" for b in (0.01, 0.03) for c in ("4%", "20")),
    }


def test_what_another_grid_works_on_is_left_to_it(toy: Toy, tmp_path: Path) -> None:
    mine, theirs = toy(), toy(seed=1)
    store = Store(tmp_path)
    claim = store.claim(theirs.id)
    assert claim is not None and Store(tmp_path).claim(theirs.id) is None

    class Meanwhile(Pretend):
        """The other grid finishes its run after this one has asked for everything else."""

        def wait(self, seconds: float) -> Sequence[TaskReport]:
            found = super().wait(seconds)
            if not found and claim.is_locked:
                Store(tmp_path).add(encode(execute(theirs)))
                claim.release()
            return found

    engine = Meanwhile(entry=encode(execute(mine)))
    outcome = drive(plan_tasks([theirs, mine], store), engine, store, lambda *_: None)
    assert (outcome.done, outcome.elsewhere) == ([mine.id], [theirs.id])
    assert theirs.id not in {task.id for task in engine.asked}
    assert store.ids() == {mine.id, theirs.id}
    assert not list((tmp_path / ".partial").glob(f"{mine.id}.*"))


def test_time_left_counts_what_runs_alike_took(toy: Toy, tmp_path: Path) -> None:
    fast, slow = [toy(learner="ncm", seed=s) for s in (0, 1)], [toy(seed=s) for s in (0, 1, 2)]
    timing = Timing(plan_tasks([*fast, *slow], Store(tmp_path)))
    assert timing.estimate_seconds({}, 2) is None
    for run, seconds in ((fast[0], 2.0), (slow[0], 10.0)):
        timing.learn(run, seconds)
        timing.end(timing.tasks[run.id])
    (features,) = (task for task in timing.tasks.values() if task.kind == "features")
    timing.end(features)
    assert timing.estimate_seconds({}, 2) == pytest.approx((2 + 10 + 10) / 2)
    assert timing.estimate_seconds({slow[1].id: 0.5}, 2) == pytest.approx((2 + 5 + 10) / 2)
