"""A worker's bench: does one task after another, keeping what runs share between them."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from verse.evaluate import Learned
from verse.experiments.engine import Task, TaskReport
from verse.experiments.execute import execute, in_order
from verse.experiments.line import Entry, encode
from verse.experiments.offline import bounds
from verse.experiments.partial import CannotResume
from verse.experiments.prepare import Prepared, Stage, Watch, preparation_key, prepare
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.types import VerseError

Send = Callable[[TaskReport], None]
REPORT_SECONDS = 0.5


class Workbench:
    """One thread, so that results do not depend on the worker, the machine's cores or its load."""

    def __init__(self, root: str | None = None) -> None:
        torch.set_num_threads(1)
        self.root = root
        self._key: tuple[object, ...] | None = None
        self._ready: Prepared | None = None

    def do(self, task: Task, send: Send) -> None:
        """Work on a task, and send how it goes and how it ended."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default", UserWarning)
            try:
                entry = None
                if task.kind == "features":
                    self.ready(Run.load(task.records[0]), make_watch(task, send))
                elif task.kind == "offline":
                    self._offline(task, make_watch(task, send))
                else:
                    entry = self._run(task, send)
            except VerseError as error:  # what a person can mend needs no traceback
                send(TaskReport(task.id, "failed", str(error)))
                return
            except Exception:
                send(TaskReport(task.id, "failed", traceback.format_exc()))
                return
        notes = tuple(dict.fromkeys(str(warning.message) for warning in caught))
        send(TaskReport(task.id, "done", entry=entry, notes=notes))

    def ready(self, run: Run, watch: Watch) -> Prepared:
        """What the run shares with others; the latest is kept, as tasks come grouped."""
        if self._ready is None or self._key != preparation_key(run):
            self._ready = self._key = None  # let go of the old one before the new one loads
            self._ready = prepare(run, root=self.root, threads=1, watch=watch)
            self._key = preparation_key(run)
        return self._ready

    def _offline(self, task: Task, watch: Watch) -> None:
        for record in task.records:
            run = Run.load(record)
            ready = self.ready(run, watch)
            bounds(ready, in_order(run, ready)[1], run, watch)

    def _run(self, task: Task, send: Send) -> Entry:
        run = Run.load(task.records[0])
        ready = self.ready(run, make_watch(task, send))

        def result(*, resume: bool) -> Result:
            return execute(
                run,
                prepared=ready,
                threads=1,
                checkpoint_file=None if task.checkpoint is None else Path(task.checkpoint),
                resume=resume,
                watch=make_watch(task, send, len(ready.train)),
            )

        try:
            finished = result(resume=True)
        except CannotResume as problem:  # nor could it the next time: nobody would finish the run
            note = f"{run.name} starts from the beginning, its checkpoint does not fit"
            warnings.warn(f"{note}: {problem.reason}", stacklevel=2)
            finished = result(resume=False)
        return encode(finished)


def make_watch(task: Task, send: Send, frames: int = 0) -> Watch:
    """A watch that sends progress, but not too often."""
    sent = time.monotonic()

    def watch(event: object) -> None:
        nonlocal sent
        if time.monotonic() - sent < REPORT_SECONDS:
            return
        if isinstance(event, Stage):
            share = event.done / event.total if event.total and task.kind != "run" else 0.0
            send(TaskReport(task.id, "progress", event.name, share))
        elif isinstance(event, Learned):
            send(TaskReport(task.id, "progress", "learning", event.position / max(frames, 1)))
        else:
            return
        sent = time.monotonic()

    return watch
