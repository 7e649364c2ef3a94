"""Server-sent events: one bounded queue per listener, filled from the writer's thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from verse.serve.limits import Limits

WAITING = 256  # events; a slower listener loses the oldest
HEARTBEAT = 15.0


class TooManyListeners(Exception):
    """Of one address, or in all."""


class Events:
    """Hand events of any thread to every listener of the event loop."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._places = (limits or Limits()).open_listeners()

    def open(self) -> None:
        """Called inside the event loop."""
        self._loop = asyncio.get_running_loop()

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def send(self, kind: str, data: dict[str, Any]) -> None:
        """From any thread."""
        if self._loop is not None and self._listeners and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, as_text(kind, data))

    def close(self) -> None:
        """From any thread: every listener's stream ends."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, None)

    def _spread(self, text: str | None) -> None:
        for waiting in self._listeners:
            if waiting.full():
                waiting.get_nowait()
            waiting.put_nowait(text)

    @contextmanager
    def subscription(self, address: str) -> Iterator[asyncio.Queue[str | None]]:
        """A listener's queue. Checked and counted in one step of the event loop."""
        if not self._places.take(address):
            raise TooManyListeners
        waiting: asyncio.Queue[str | None] = asyncio.Queue(WAITING)
        self._listeners.add(waiting)
        try:
            yield waiting
        finally:
            self._listeners.discard(waiting)
            self._places.give(address)


class EventStream(StreamingResponse):
    """What one listener hears, beginning with what ``first`` says then."""

    def __init__(self, events: Events, first: Callable[[], str]) -> None:
        super().__init__(iter(()), media_type="text/event-stream")
        self._events, self._first = events, first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._events.subscription(scope.get("verse.address", "")) as waiting:
                self.body_iterator = stream_events(self._first(), waiting)
                await super().__call__(scope, receive, send)
        except TooManyListeners:
            refusal = JSONResponse({"detail": "too many listeners"}, 429, {"Retry-After": "10"})
            await refusal(scope, receive, send)


async def stream_events(first: str, waiting: asyncio.Queue[str | None]) -> AsyncIterator[str]:
    """Events as they come; a comment now and then shows that the connection lives."""
    yield f"retry: 1000\n\n{first}"
    while True:
        try:
            text = await asyncio.wait_for(waiting.get(), HEARTBEAT)
        except TimeoutError:
            text = ": still here\n\n"
        if text is None:
            return
        yield text


def as_text(kind: str, data: dict[str, Any]) -> str:
    """One event as it is sent.

    >>> as_text("undone", {"seq": 1})
    'event: undone\\ndata: {"seq": 1}\\n\\n'
    """
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n"
