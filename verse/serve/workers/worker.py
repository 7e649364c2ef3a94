"""A thread with a bounded queue in front of it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from verse.serve.errors import Busy, Closing
from verse.serve.jobs import Ask, Change, Teach

J = TypeVar("J", Ask, Teach | Change)


class Worker(Generic[J]):
    """``work`` gets the jobs in order: one alone, or as many as wait of those that ``go_together``.

    >>> def echo(asked):
    ...     for question in asked:
    ...         question.answer.set_result(question.picture)
    >>> worker = Worker("predict", echo, limit=2)
    >>> question = Ask("picture")
    >>> worker.put(question, seconds=1)
    >>> worker.start()
    >>> question.answer.result()
    'picture'
    >>> worker.stop()
    """

    def __init__(
        self,
        name: str,
        work: Callable[[list[J]], None],
        *,
        limit: int,
        go_together: Callable[[J], bool] = lambda job: False,
        most: int = 1,
    ) -> None:
        self.name = name
        self._work: Callable[[list[J]], None] = work
        self._go_together: Callable[[J], bool] = go_together
        self._most = most
        self._jobs: queue.Queue[J | None] = queue.Queue(limit)
        self._thread = threading.Thread(target=self._run, name=f"verse-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Jobs in the queue."""
        return self._jobs.qsize()

    def put(self, job: J, *, seconds: int) -> None:
        """From any thread; if the queue is full, ``Busy`` names the seconds to wait."""
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise Busy(self.name, seconds) from None

    def stop(self) -> None:
        """Finish what waits; what could not be begun is refused."""
        if self.alive:
            self._jobs.put(None)
            self._thread.join()
        with suppress(queue.Empty):
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    job.answer.set_exception(Closing())

    def _run(self) -> None:
        ahead: list[J | None] = []  # taken from the queue, but not of the group before it
        while (job := ahead.pop() if ahead else self._jobs.get()) is not None:
            group = [job]
            while self._go_together(job) and len(group) < self._most and not ahead:
                try:
                    following = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if following is not None and self._go_together(following):
                    group.append(following)
                else:
                    ahead.append(following)
            self._work(group)
