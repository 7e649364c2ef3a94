"""A grid: which tasks its runs need, and the loop that has an engine do those that are missing."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock

from verse.experiments.engine import GridEngine, Task, TaskReport
from verse.experiments.prepare import preparation_key
from verse.experiments.run import Run
from verse.experiments.store import Store

ATTEMPTS = 3  # for a task whose worker died
WAIT_SECONDS = 0.5


@dataclass
class GridOutcome:
    """How a grid ended: the runs done now, and the tasks that failed, and why."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    elsewhere: list[str] = field(default_factory=list)  # done by other grids meanwhile
    notes: list[str] = field(default_factory=list)


Watch = Callable[[Task, TaskReport], None]


def plan_tasks(runs: Iterable[Run], store: Store, *, partials: bool = True) -> list[Task]:
    """The tasks for the runs that the store does not have.

    Features come once per data set and backbone, Offline once per seed of those, because class
    orderings of one seed show the same classes and iid and instance need the last of these models.
    """
    finished = store.ids()
    missing = [run for run in runs if run.id not in finished]
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in missing:
        groups.setdefault(preparation_key(run), []).append(run)
    first: list[Task] = []
    tasks: list[Task] = []
    for shared, members in groups.items():
        label = hashlib.sha256(repr(shared).encode()).hexdigest()[:8]
        features = Task(f"features {label}", "features", (members[0].document(),))
        first.append(features)
        for run in members:
            after = {features.id}
            if run.offline:
                after.add(f"offline {label} {run.seed}")
            file = str(store.partial(run.id)) if partials else None
            tasks.append(Task(run.id, "run", (run.document(),), frozenset(after), file))
        for seed, records in _group_by_seed(members).items():
            offline = Task(f"offline {label} {seed}", "offline", records, frozenset([features.id]))
            place = next(i for i, task in enumerate(tasks) if offline.id in task.after)
            tasks.insert(place, offline)
    return first + tasks


def _group_by_seed(runs: Sequence[Run]) -> dict[int, tuple[dict[str, object], ...]]:
    """Seed → one run for each schedule that Offline must cover, the longest first."""
    found: dict[int, dict[tuple[object, ...], Run]] = {}
    for run in runs:
        if run.offline:
            classes = run.order.startswith("class-")
            schedule = (not classes, run.every if classes else 0)
            found.setdefault(run.seed, {}).setdefault(schedule, run)
    return {
        seed: tuple(schedules[which].document() for which in sorted(schedules))
        for seed, schedules in found.items()
    }


def drive(tasks: Sequence[Task], engine: GridEngine, store: Store, watch: Watch) -> GridOutcome:
    """Run all tasks. If one fails, the others continue; errors are reported at the end.

    A run's result is stored here and nowhere else, so that none is lost or doubled. A task whose
    worker died is tried again from its checkpoint. Other grids may fill the same store: a run that
    one of them works on is left to it, and looked after again at the end.
    """
    by_id = {task.id: task for task in tasks}
    waiting = list(tasks)
    running: dict[str, FileLock | None] = {}
    ended: set[str] = set()
    attempts: Counter[str] = Counter()
    outcome = GridOutcome()
    try:
        while waiting or running:
            # a cluster that has lost a machine has less than no room
            for task in _ready(waiting, ended, by_id):
                if engine.free <= 0:
                    break
                claim = store.claim(task.id) if task.kind == "run" else None
                if task.kind == "run" and claim is None:
                    continue  # another grid has it
                waiting.remove(task)
                if task.kind == "run" and store.has(Run.load(task.records[0])):
                    outcome.elsewhere.append(task.id)
                    _let_go(claim, done=True)
                    continue
                attempts[task.id] += 1
                running[task.id] = claim
                engine.submit(task)
            if not running:
                time.sleep(WAIT_SECONDS)
            for report in engine.wait(WAIT_SECONDS):
                if report.task not in running:  # a second answer to a task that was given again
                    continue
                task = by_id[report.task]
                if report.kind == "done":
                    if report.entry is not None:
                        store.add(report.entry)
                        outcome.done.append(task.id)
                        store.partial(task.id).unlink(missing_ok=True)
                    outcome.notes += [n for n in report.notes if n not in outcome.notes]
                    ended.add(task.id)
                elif report.kind == "lost" and attempts[task.id] < ATTEMPTS:
                    waiting.insert(0, task)
                elif report.kind in ("failed", "lost"):
                    report = replace(report, kind="failed")  # lost once too often
                    outcome.failed[task.id] = report.text
                    ended.add(task.id)
                if report.kind != "progress":
                    _let_go(running.pop(task.id), done=report.kind == "done")
                watch(task, report)
    finally:
        engine.stop()
        for claim in running.values():
            _let_go(claim, done=False)
    return outcome


def _let_go(claim: FileLock | None, *, done: bool) -> None:
    """Give a run back. The file of one that is done is of no use: who locks it looks first."""
    if claim is not None:
        if done:
            Path(claim.lock_file).unlink(missing_ok=True)
        claim.release()


def _ready(waiting: Sequence[Task], ended: set[str], all_: Mapping[str, Task]) -> Iterator[Task]:
    """The tasks that need not wait; a task that failed holds nobody up."""
    for task in list(waiting):
        if all(before in ended or before not in all_ for before in task.after):
            yield task
