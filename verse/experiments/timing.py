"""How long a grid will still take, from how long runs like those ahead have taken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from verse.experiments.engine import Task
from verse.experiments.run import Run

Kind = tuple[object, ...]


class Timing:
    """Knows the tasks ahead and what runs of each kind cost."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = {task.id: task for task in tasks}
        self._ahead = {task.id: task_kind(Run.load(task.records[0]), task.kind) for task in tasks}
        self._seconds: dict[Kind, list[float]] = defaultdict(list)

    def learn(self, run: Run, seconds: float, kind: str = "run") -> None:
        """Record how long a run, or a task of another kind, has taken."""
        self._seconds[task_kind(run, kind)].append(seconds)

    def end(self, task: Task) -> None:
        """The task is no longer ahead."""
        self._ahead.pop(task.id, None)

    def estimate_seconds(self, shares: Mapping[str, float], width: int) -> float | None:
        """Seconds until all is done by ``width`` workers; None before the first run is done."""
        means = {kind: sum(times) / len(times) for kind, times in self._seconds.items()}
        runs = [mean for kind, mean in means.items() if kind[0] == "run"]
        if not runs:
            return None
        other = sum(runs) / len(runs)
        total = sum(
            means.get(kind, other) * (1 - shares.get(task, 0.0))
            for task, kind in self._ahead.items()
        )
        return total / max(1, min(width, len(self._ahead)))


def task_kind(run: Run, kind: str) -> Kind:
    """Tasks that take about the same time."""
    learner = run.learner if kind == "run" else ""
    return (kind, run.dataset, run.thin, run.validation, run.backbone, run.at, learner)


def format_duration(seconds: float) -> str:
    """A duration for people.

    >>> format_duration(5.24), format_duration(90), format_duration(7300)
    ('5.2 s', '2 min', '2 h 02 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest:02d} min"
