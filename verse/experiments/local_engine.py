"""Worker processes on this machine, one thread each.

A worker that dies takes nothing with it but its task; a worker whose parent dies ends itself, so
that a grid started again finds nobody working on the same runs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from verse.experiments.engine import Task, TaskReport

STOP_SECONDS = 20.0  # for tasks in flight to save their checkpoints
_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class LocalWorker:
    """A process and its task."""

    process: SpawnProcess
    pipe: Connection
    task: Task | None = None
    awake: bool = False  # it has started and can save what it does


class LocalEngine:
    """``jobs`` processes, started when they are needed."""

    def __init__(self, jobs: int, root: str | None = None) -> None:
        self.width, self.root = jobs, root
        self.workers: list[LocalWorker] = []

    @property
    def free(self) -> int:
        """Workers without a task, or not started yet."""
        return self.width - sum(worker.task is not None for worker in self.workers)

    def submit(self, task: Task) -> None:
        """Hand the task to an idle worker."""
        while len(self.workers) < self.width:  # all at once: the next task finds one awake
            self._start()
        worker = next(worker for worker in self.workers if worker.task is None)
        worker.task = task
        with suppress(BrokenPipeError):  # it died while idle: wait() finds out and says so
            worker.pipe.send(task)

    def wait(self, seconds: float) -> Sequence[TaskReport]:
        """Everything the workers sent; a dead worker's task is reported lost."""
        ready = wait([worker.pipe for worker in self.workers], timeout=seconds)
        reports: list[TaskReport] = []
        for worker in [w for w in self.workers if w.pipe in ready]:
            try:
                while worker.pipe.poll():
                    report = worker.pipe.recv()
                    worker.awake = True
                    if report is None:
                        continue
                    reports.append(report)
                    if report.kind in ("done", "failed"):
                        worker.task = None
            except (EOFError, OSError):  # it died, perhaps in the middle of a report
                reports += self._bury(worker)
        return reports

    def stop(self) -> None:
        """Interrupt the workers once, give them time to save, then end them."""
        for worker in self.workers:
            if not worker.awake:
                worker.process.kill()
            elif worker.task is None:
                worker.pipe.close()  # an idle worker ends when nobody can send it anything
            elif worker.process.pid is not None and worker.process.is_alive():
                os.kill(worker.process.pid, signal.SIGINT)
        for worker in self.workers:
            worker.process.join(STOP_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self.workers.clear()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self.root), daemon=True)
        with _environment(dict.fromkeys(_ONE_THREAD, "1")):
            process.start()
        theirs.close()
        self.workers.append(LocalWorker(process, ours))

    def _bury(self, worker: LocalWorker) -> list[TaskReport]:
        worker.process.join()
        self.workers.remove(worker)
        worker.pipe.close()
        code = worker.process.exitcode or 0
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if worker.task is None:
            return []
        return [TaskReport(worker.task.id, "lost", f"its process ended with {how}")]


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for children that start meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(pipe: Connection, root: str | None) -> None:
    """The life of a worker."""
    if sys.platform != "win32":
        os.setsid()  # Ctrl-C in the terminal reaches the parent alone, which passes it on once
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        from verse.experiments.bench import Workbench

        bench = Workbench(root)
        pipe.send(None)
        while True:
            bench.do(pipe.recv(), pipe.send)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
