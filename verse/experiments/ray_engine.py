"""Workers on the machines of a Ray cluster (the extra ``ray``).

Every machine has verse installed and the data sets where its own environment says. Features and
Offline are computed once in all, as tasks of their own: what one machine made travels to the others
that need it. Results come back to the caller, who alone writes the store. A task whose machine dies
is reported lost.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from verse.experiments.bench import Workbench
from verse.experiments.engine import Task, TaskReport
from verse.experiments.execute import in_order
from verse.experiments.offline import files
from verse.experiments.prepare import build_run_backbone, ignore, load_data
from verse.experiments.run import Run
from verse.extras import OptionalImport
from verse.features import Features
from verse.features.carry import FeaturePack, pack, unpack_features
from verse.paths import cache_directory, write_atomic
from verse.types import BadSetting

STOP_SECONDS = 20.0
Bounds = dict[str, bytes]  # name of a file → its content


class RayEngine:
    """Tasks of one processor each on an existing cluster, or on a new one on this machine."""

    def __init__(
        self, address: str | None = None, jobs: int | None = None, root: str | None = None
    ) -> None:
        with OptionalImport():
            import ray
        self._ray: Any = ray
        self._ours = not ray.is_initialized()
        if self._ours:
            try:
                own: dict[str, Any] = {}
                if address is None:  # a cluster of our own listens to nobody else
                    own = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
            except ConnectionError as error:
                raise BadSetting(f"no Ray cluster at {address}: {error}") from error
        self._jobs, self._root = jobs, root
        # a lost task is the grid's to repeat, which counts the attempts
        self._work = ray.remote(num_cpus=1, max_retries=0)(run_task)
        self._running: dict[Any, Task] = {}
        self._bounds: dict[str, Any] = {}
        self._features: dict[str, Any] = {}
        self._new: list[TaskReport] = []

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
        # by name, so that only a machine that lacks them fetches them
        features = {name: self._features[name] for name in task.after if name in self._features}
        self._running[self._work.remote(task, self._root, features, *bounds)] = task
        self._new.append(TaskReport(task.id, "progress", "on the cluster"))

    def wait(self, seconds: float) -> Sequence[TaskReport]:
        """The tasks that have ended."""
        reports, self._new = self._new, []
        if not self._running:
            return reports
        ended, _ = self._ray.wait(list(self._running), timeout=seconds)
        for reference in ended:
            task = self._running.pop(reference)
            try:
                report, made = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                reports.append(TaskReport(task.id, "lost", f"{type(error).__name__}: {error}"))
                continue
            if made:  # kept here, where no lost machine can take it along
                kept = self._features if task.kind == "features" else self._bounds
                kept[task.id] = self._ray.put(made)
            reports.append(report)
        return reports

    def stop(self) -> None:
        """Interrupt what runs, so that it saves its checkpoint, and disconnect from the cluster."""
        for reference in self._running:
            self._ray.cancel(reference)
        if self._running:
            self._ray.wait(
                list(self._running), num_returns=len(self._running), timeout=STOP_SECONDS
            )
        self._running.clear()
        if self._ours:
            self._ray.shutdown()


_benches: dict[str | None, Workbench] = {}  # of this worker process, which Ray uses again


def run_task(
    task: Task, root: str | None, features: dict[str, Any], *bounds: Bounds
) -> tuple[TaskReport, Bounds | list[FeaturePack]]:
    """On a worker: the report of the task and what it has made for others."""
    bench = _benches.setdefault(root, Workbench(root))
    for name, content in (item for part in bounds for item in part.items()):
        path = cache_directory() / "offline" / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
    for name, reference in features.items():
        _take(name, reference, Run.load(task.records[0]), root)
    file = cache_directory() / "partial" / f"{task.id}.checkpoint"
    reports: list[TaskReport] = []
    bench.do(replace(task, checkpoint=str(file)), reports.append)
    if reports[-1].kind == "done":
        file.unlink(missing_ok=True)
        if task.kind == "features":
            return reports[-1], _compute_features(bench, task)
    return reports[-1], _train_offline(bench, task) if task.kind == "offline" else {}


def _mark(name: str) -> Path:
    """Says that this machine has the features of a task."""
    return cache_directory() / "carried" / name.replace(" ", "-")


def _take(name: str, reference: Any, run: Run, root: str | None) -> None:
    """Fetch features that another machine computed, once for each machine."""
    import ray

    mark = _mark(name)
    mark.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(mark.with_suffix(".lock")):
        if not mark.exists():
            dataset, backbone = load_data(run, root=root), build_run_backbone(run, 1, "cpu")
            for packed, frames in zip(
                ray.get(reference), (dataset.train, dataset.test), strict=True
            ):
                unpack_features(packed, frames, backbone, run.features)
            mark.touch()


def _compute_features(bench: Workbench, task: Task) -> list[FeaturePack]:
    run = Run.load(task.records[0])
    ready = bench.ready(run, ignore)
    mark = _mark(task.id)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    sides = (ready.train.z, ready.test.z)
    return [
        pack(side, ready.backbone, run.features) for side in sides if isinstance(side, Features)
    ]


def _train_offline(bench: Workbench, task: Task) -> Bounds:
    found: Bounds = {}
    for record in task.records:
        run = Run.load(record)
        ready = bench.ready(run, ignore)
        paths = files(ready, in_order(run, ready)[1], run)
        found |= {path.name: path.read_bytes() for path in paths if path.exists()}
    return found
