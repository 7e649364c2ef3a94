"""The interface of what executes the tasks of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from verse.experiments.line import Entry


@dataclass(frozen=True)
class Task:
    """One piece of work.

    ``kind`` is "features" (compute them), "offline" (train the bounds of a seed) or "run";
    ``records`` are the runs it is about, as documents; ``after`` names tasks that come first.
    """

    id: str
    kind: str
    records: tuple[dict[str, Any], ...]
    after: frozenset[str] = frozenset()
    checkpoint: str | None = None


@dataclass(frozen=True)
class TaskReport:
    """What an engine says about a task.

    ``kind`` is "progress" (``text``, ``share`` of it done), "done" (``entry``: of a run its
    result), "failed" (``text``: why), or "lost" (the worker died; ``text``: how).
    """

    task: str
    kind: str
    text: str = ""
    share: float = 0.0
    entry: Entry | None = None
    notes: tuple[str, ...] = field(default=())


class GridEngine(Protocol):
    """Works on tasks somewhere."""

    @property
    def free(self) -> int:
        """How many more tasks can start now."""

    @property
    def width(self) -> int:
        """How many tasks run at the same time."""

    def submit(self, task: Task) -> None:
        """Start a task."""

    def wait(self, seconds: float) -> Sequence[TaskReport]:
        """The reports that have arrived; waits at most this long for the first."""

    def stop(self) -> None:
        """End all work; tasks in flight save their checkpoints first."""
