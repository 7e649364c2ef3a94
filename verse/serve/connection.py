"""One HTTP connection with time limits, which uvicorn lacks.

uvicorn closes connections that are idle between two requests. It has no limit for the first
request, for headers that come byte by byte, for a body after its answer, or for an answer that is
not taken; nor one for the connections of an address (see ``listener``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from verse.serve.limits import Limits

GRACE = 5.0  # seconds after the guard's own limit for a body, which answers with 408


class Connection(H11Protocol):
    """uvicorn's connection; a request that does not arrive in time ends it.

    ``on_close`` is called once, when it is closed.
    """

    def __init__(self, *, limits: Limits, on_close: Callable[[], None], **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.limits, self.on_close = limits, on_close
        self._receiving: tuple[str, asyncio.TimerHandle] | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect("headers")

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._writing = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        if self._writing is not None:
            self._writing.cancel()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        self.on_close()

    def _look(self) -> None:
        """What does the client owe now: the rest of its headers, of its body, or nothing?"""
        state, (begun, _) = self.conn.their_state, self.conn.trailing_data
        if self.transport.is_closing():
            self._expect(None)
        elif state is h11.SEND_BODY:
            self._expect("body")
        elif state is h11.IDLE and begun:
            self._expect("headers")
        else:  # a request is being answered, or uvicorn's own limit for idle connections holds
            self._expect(None)

    def _expect(self, what: str | None) -> None:
        """Begin to wait for something, unless that was begun before: no byte prolongs it."""
        if self._receiving is not None:
            if self._receiving[0] == what:
                return
            self._receiving[1].cancel()
            self._receiving = None
        if what is not None:
            limits = self.limits
            seconds = limits.header_seconds if what == "headers" else limits.body_seconds + GRACE
            self._receiving = (what, self.loop.call_later(seconds, self.transport.abort))
