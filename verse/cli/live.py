"""A run while it goes on: a row for every test event, bars for everything that takes time."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from types import TracebackType

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

from verse.cli.output import console
from verse.evaluate import Learned, Tested
from verse.experiments import Stage


class Rate(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        """The speed, once there is one."""
        return Text("" if not task.speed else f"{task.speed:,.1f}/s")


class Live:
    """Watches a run and shows it on standard error; rows appear also where no terminal is."""

    def __init__(self, name: str, frames: int = 0) -> None:
        self.name, self.frames = name, frames
        self._console = console()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            Rate(),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
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
        if isinstance(event, Stage):
            bar = event.name.partition(", loss")[0]
            self._show(bar, event.name, event.done, event.total or None)
            if not self._console.is_terminal and 1 < event.total == event.done:
                self._print(f"{event.name}: {event.total:,}")  # a log has no bars
        elif isinstance(event, Learned):
            losses = "".join(f"  {name} {value:.3f}" for name, value in event.losses.items())
            self._show("learn", f"{self.name}{losses}", event.position, self.frames or None)
        elif isinstance(event, Tested):
            if not self._events:
                self._print("event   frames  classes      α_t")
            self._events += 1
            self._print(
                f"{self._events:5d} {event.after:8,d} {len(event.classes):8d} {event.accuracy:8.4f}"
            )

    def _show(self, bar: str, text: str, done: int, total: int | None) -> None:
        if bar not in self._tasks:
            for other in self._tasks.values():
                self._bars.update(other, visible=False)
            self._tasks[bar] = self._bars.add_task(text, total=total, completed=done)
        self._bars.update(self._tasks[bar], description=text, completed=done, total=total,
                          visible=True)  # fmt: skip

    def _print(self, line: str) -> None:
        self._bars.console.print(line)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings as one line for people, without file names and source."""
    shown = console()

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_: shown.print(
            f"Warning: {message}", style="yellow", markup=False
        )
        yield
