"""The display of a running grid: means so far, what is running, and the time left."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from verse.cli.output import console
from verse.experiments.engine import Task, TaskReport
from verse.experiments.run import Run
from verse.experiments.store import Store
from verse.experiments.timing import Timing, format_duration

VARIED = ("backbone", "at", "batchnorm", "precision", "memory", "capacity")  # besides settings


def labels(runs: Sequence[Run]) -> dict[str, str]:
    """Run → its learner and the settings in which it differs from other runs on the stream."""
    choices = {run.id: dict(run.settings) | {n: getattr(run, n) for n in VARIED} for run in runs}
    groups: dict[tuple[str, str, str, int], list[dict[str, object]]] = defaultdict(list)
    for run in runs:
        groups[run.learner, run.dataset, run.order, run.seed].append(choices[run.id])
    varied: dict[str, list[str]] = {run.learner: [] for run in runs}
    for (learner, *_), group in groups.items():
        for name in dict.fromkeys(name for choice in group for name in choice):
            several = any(choice.get(name) != group[0].get(name) for choice in group)
            if several and name not in varied[learner]:
                varied[learner].append(name)
    return {
        run.id: " ".join(
            [
                run.learner,
                *(
                    f"{name}={choices[run.id][name]}"
                    for name in varied[run.learner]
                    if name in choices[run.id]
                ),
            ]
        )
        for run in runs
    }


class GridLive:
    """Watches a grid; without a terminal it prints one line per finished run instead."""

    def __init__(self, runs: Sequence[Run], tasks: Sequence[Task], store: Store) -> None:
        self.width = 1
        self._runs = {run.id: run for run in runs}
        self._labels = labels(runs)
        self._total = len(runs)
        missing = [task.id for task in tasks if task.kind == "run"]
        self._timing = Timing(tasks)
        self._scores: dict[tuple[str, str], list[float]] = defaultdict(list)
        for result in store.results(set(self._runs) - set(missing), skip_damaged=True):
            self._score(self._runs[result.id], result.omega_all, result.mu_all)
            self._timing.learn(result.run, result.seconds)
        self._running: dict[str, tuple[float, str, float]] = {}  # task → since, text, share
        self._done, self._failed = self._total - len(missing), 0
        self._console = console()
        self._live = Live(
            console=self._console, get_renderable=self._render, refresh_per_second=2, transient=True
        )

    def __enter__(self) -> GridLive:
        self._console.print(f"{self._total} runs, {self._done} of them already finished")
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()
            self._console.print(self._table())

    def __call__(self, task: Task, report: TaskReport) -> None:
        """Take notice of what an engine reports."""
        began = self._running.get(task.id, (time.monotonic(), "", 0.0))[0]
        if report.kind == "progress":
            self._running[task.id] = (began, report.text, report.share)
            return
        self._running.pop(task.id, None)
        if report.kind in ("done", "failed"):
            self._timing.end(task)
        if report.kind in ("failed", "lost"):
            self._failed += report.kind == "failed"
            last = report.text.strip().rpartition("\n")[2]
            self._print(f"{report.kind}: {self._name(task)}: {last}", always=True)
        elif report.entry is not None:
            self._finish(task, report)
        else:
            seconds = time.monotonic() - began
            self._timing.learn(Run.load(task.records[0]), seconds, task.kind)
            self._print(f"{self._name(task)} done ({format_duration(seconds)})")

    def _finish(self, task: Task, report: TaskReport) -> None:
        assert report.entry is not None
        run, line = self._runs[task.id], report.entry.line
        self._done += 1
        self._timing.learn(run, float(line["seconds"]))
        self._score(run, line["omega_all"], line["mu_all"])
        omega = "" if line["omega_all"] is None else f"  Ω {line['omega_all']:.4f}"
        self._print(
            f"[{self._done}/{self._total}] {self._name(task)}  μ {line['mu_all']:.4f}{omega}"
            f"  ({format_duration(line['seconds'])}), {self._left()}"
        )

    def _print(self, line: str, always: bool = False) -> None:
        """A line for a log; on a terminal the table says it."""
        if always or not self._console.is_terminal:
            self._console.print(line, markup=False, soft_wrap=True)

    def _score(self, run: Run, omega: float | None, mu: float) -> None:
        column = f"{run.dataset.rpartition(':')[2]} {run.order}"
        self._scores[self._labels[run.id], column].append(mu if omega is None else omega)

    def _left(self) -> str:
        shares = {task: share for task, (_, _, share) in self._running.items()}
        seconds = self._timing.estimate_seconds(shares, self.width)
        return "time left unknown" if seconds is None else f"about {format_duration(seconds)} left"

    def _name(self, task: Task) -> str:
        run = Run.load(task.records[0])
        data = run.dataset.rpartition(":")[2]
        if task.kind == "features":
            return f"features of {data}, {run.backbone}"
        if task.kind == "offline":
            return f"Offline of {data}, {run.backbone}, seed {run.seed}"
        return f"{data} {self._labels[run.id]} {run.order} seed {run.seed}"

    def _render(self) -> RenderableType:
        bar = ProgressBar(total=self._total, completed=self._done, width=40)
        head = Table.grid(padding=(0, 2))
        failed = f", {self._failed} failed" if self._failed else ""
        head.add_row(bar, f"{self._done}/{self._total} runs{failed}", self._left())
        now = [
            Text(f"  {self._name(self._timing.tasks[task])}: {text} {share:.0%}", style="dim")
            for task, (_, text, share) in self._running.items()
        ]
        return Group(self._table(), head, *now)

    def _table(self) -> Table:
        columns = sorted({column for _, column in self._scores})
        table = Table(
            box=None,
            pad_edge=False,
            header_style="bold",
            caption="mean Ω_all (μ_all without Offline) so far",
            caption_justify="left",
        )
        table.add_column("learner")
        for column in columns:
            table.add_column(column, justify="right")
        for label in dict.fromkeys(self._labels.values()):
            cells = [self._scores.get((label, column), []) for column in columns]
            table.add_row(label, *(f"{sum(c) / len(c):.4f} ({len(c)})" if c else "" for c in cells))
        return table
