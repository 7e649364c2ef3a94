"""Workers on the machines of a Ray cluster (the extra ``ray``).

Every machine has verse installed and the data sets where its own environment says; features are
computed once on each, Offline once in all: what one machine trained travels to the others. Results
come back to the caller, who alone writes the store. A task whose machine dies is reported lost.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from verse.backbones.weights import cache_directory
from verse.checkpoint import write_atomic
from verse.experiments.bench import Bench
from verse.experiments.engine import Report, Task
from verse.experiments.execute import in_order
from verse.experiments.offline import files
from verse.experiments.prepare import nothing
from verse.experiments.run import Run
from verse.types import BadSetting, MissingExtra

STOP_SECONDS = 20.0
Bounds = dict[str, bytes]  # name of a file → its content


class RayEngine:
    """Tasks of one processor each on an existing cluster, or on a new one on this machine."""

    def __init__(
        self, address: str | None = None, jobs: int | None = None, root: str | None = None
    ) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise MissingExtra("ray", "ray") from error
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            except ConnectionError as error:
                raise BadSetting(f"no Ray cluster at {address}: {error}") from error
        self._jobs, self._root = jobs, root
        # a lost task is the grid's to repeat, which counts the attempts
        self._work = ray.remote(num_cpus=1, max_retries=0)(work)
        self._running: dict[Any, Task] = {}
        self._bounds: dict[str, Any] = {}
        self._new: list[Report] = []

    @property
    def width(self) -> int:
        """As many as the cluster has processors now, or as asked for."""
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        return max(1, processors if self._jobs is None else min(self._jobs, processors))

    @property
    def free(self) -> int:
        """Processors without one of our tasks."""
        return self.width - len(self._running)

    def submit(self, task: Task) -> None:
        """Let the cluster place the task; the bounds it needs go with it."""
        bounds = [self._bounds[name] for name in sorted(task.after) if name in self._bounds]
        self._running[self._work.remote(task, self._root, *bounds)] = task
        self._new.append(Report(task.id, "progress", "on the cluster"))

    def wait(self, seconds: float) -> Sequence[Report]:
        """The tasks that have ended."""
        reports, self._new = self._new, []
        if not self._running:
            return reports
        ended, _ = self._ray.wait(list(self._running), timeout=seconds)
        for reference in ended:
            task = self._running.pop(reference)
            try:
                report, bounds = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                reports.append(Report(task.id, "lost", f"{type(error).__name__}: {error}"))
                continue
            if bounds:  # kept here, where no lost machine can take them along
                self._bounds[task.id] = self._ray.put(bounds)
            reports.append(report)
        return reports

    def stop(self) -> None:
        """Interrupt what runs, so that it saves its checkpoint, and let go of the cluster."""
        for reference in self._running:
            self._ray.cancel(reference)
        if self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running),
                           timeout=STOP_SECONDS)  # fmt: skip
        self._running.clear()
        if self._ours:
            self._ray.shutdown()


_benches: dict[str | None, Bench] = {}  # of this worker process, which Ray uses again


def work(task: Task, root: str | None, *bounds: Bounds) -> tuple[Report, Bounds]:
    """On a worker: the report of the task and, of Offline, what it has trained."""
    bench = _benches.setdefault(root, Bench(root))
    for name, content in (item for part in bounds for item in part.items()):
        path = cache_directory() / "offline" / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
    file = cache_directory() / "partial" / f"{task.id}.checkpoint"
    reports: list[Report] = []
    bench.do(replace(task, checkpoint=str(file)), reports.append)
    if reports[-1].kind == "done":
        file.unlink(missing_ok=True)
    return reports[-1], _trained(bench, task) if task.kind == "offline" else {}


def _trained(bench: Bench, task: Task) -> Bounds:
    found: Bounds = {}
    for record in task.records:
        run = Run.load(record)
        ready = bench.ready(run, nothing)
        paths = files(ready, in_order(run, ready)[1], run)
        found |= {path.name: path.read_bytes() for path in paths if path.exists()}
    return found
