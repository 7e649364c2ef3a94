"""The display of a run: a row for every test, and progress bars."""

from __future__ import annotations

import sys
from types import TracebackType

import click
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from verse.cli.output import console, plural
from verse.datasets import Dataset
from verse.evaluate import Learned, Tested
from verse.experiments import Opened, Stage


class RateColumn(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        """The speed, once there is one."""
        return Text("" if not task.speed else f"{task.speed:,.1f}/s")


class Live:
    """Watches a run and shows it on standard error; rows appear also where no terminal is.

    With ``result`` the rows of the tests are the command's result, so they go to standard output.
    """

    def __init__(self, name: str, frames: int = 0, *, result: bool = False) -> None:
        self.name, self.frames = name, frames
        # On one screen with the bars they must go through them, or they would be torn apart.
        self._rows_apart = result and not (sys.stdout.isatty() and sys.stderr.isatty())
        self._console = console()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            RateColumn(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
            redirect_stdout=False,
        )
        self._tasks: dict[str, TaskID] = {}
        self._events = 0

    def __enter__(self) -> Live:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def __call__(self, event: object) -> None:
        if isinstance(event, Opened):
            self.say(describe_dataset(event.dataset))
        elif isinstance(event, Stage):
            bar = event.name.partition(", loss")[0]
            self._show(bar, event.name, event.done, event.total or None)
            if not self._console.is_terminal and 1 < event.total == event.done:
                self._print(f"{event.name}: {event.total:,}")  # a log has no bars
        elif isinstance(event, Learned):
            losses = "".join(f"  {name} {value:.3f}" for name, value in event.losses.items())
            self._show("learn", f"{self.name}{losses}", event.position, self.frames or None)
        elif isinstance(event, Tested):
            if not self._events:
                self._row("event   frames  classes      α_t")
            self._events += 1
            self._row(
                f"{self._events:5d} {event.after:8,d} {len(event.classes):8d} {event.accuracy:8.4f}"
            )

    def say(self, text: str) -> None:
        """A line of news, above the bars."""
        self._bars.console.print(text, markup=False, soft_wrap=True)

    def _row(self, line: str) -> None:
        if self._rows_apart:
            click.echo(line)
        else:
            self._print(line)

    def _show(self, bar: str, text: str, done: int, total: int | None) -> None:
        if bar not in self._tasks:
            for other in self._tasks.values():
                self._bars.update(other, visible=False)
            self._tasks[bar] = self._bars.add_task(text, total=total, completed=done)
        self._bars.update(
            self._tasks[bar], description=text, completed=done, total=total, visible=True
        )

    def _print(self, line: str) -> None:
        self._bars.console.print(line)


def describe_dataset(data: Dataset) -> str:
    """A data set in a line: its classes, its frames, its split."""
    videos = len(set(data.train.videos.tolist()))
    return (
        f"data     {data.name}: {plural(len(data.classes), 'class', 'classes')}, "
        f"{plural(len(data.train), 'training frame')} in {plural(videos, 'video')}, "
        f"{plural(len(data.test), 'test frame')}" + (f"; split: {data.split}" if data.split else "")
    )
