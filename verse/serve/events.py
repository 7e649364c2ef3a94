"""Server-sent events: one bounded queue per listener, filled from the writer's thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

LISTENERS = 64
WAITING = 256  # events; a listener who is slower loses the oldest
HEARTBEAT = 15.0


class Events:
    """Hand events of any thread to every listener of the event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[asyncio.Queue[str | None]] = set()

    def open(self) -> None:
        """Called inside the event loop."""
        self._loop = asyncio.get_running_loop()

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def send(self, kind: str, data: dict[str, Any]) -> None:
        """From any thread."""
        if self._loop is not None and self._listeners and not self._loop.is_closed():
            text = f"event: {kind}\ndata: {json.dumps(data)}\n\n"
            self._loop.call_soon_threadsafe(self._spread, text)

    def close(self) -> None:
        """From any thread: every listener's stream ends."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, None)

    def _spread(self, text: str | None) -> None:
        for waiting in self._listeners:
            if waiting.full():
                waiting.get_nowait()
            waiting.put_nowait(text)

    async def stream(self, first: str) -> AsyncIterator[str]:
        """What one listener hears, beginning with ``first``."""
        waiting: asyncio.Queue[str | None] = asyncio.Queue(WAITING)
        self._listeners.add(waiting)
        try:
            yield f"retry: 1000\n\n{first}"
            while True:
                try:
                    text = await asyncio.wait_for(waiting.get(), HEARTBEAT)
                except TimeoutError:
                    text = ": still here\n\n"
                if text is None:
                    return
                yield text
        finally:
            self._listeners.discard(waiting)
