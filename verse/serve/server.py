"""The server: uvicorn's, behind a listener and connections with limits."""

from __future__ import annotations

import asyncio
import logging
import socket
import warnings
from collections.abc import Callable
from typing import Any

import uvicorn
from fastapi import FastAPI

from verse.serve.connection import Connection
from verse.serve.limits import Limits, RequestRate
from verse.serve.listener import Listener


class Server(uvicorn.Server):
    """Serves an application on bound sockets; ``started`` is called when it does."""

    def __init__(
        self,
        app: FastAPI,
        sockets: list[socket.socket],
        *,
        limits: Limits,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        on_start: Callable[[], None] = lambda: None,
    ) -> None:
        config = uvicorn.Config(
            app,
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
            http=Connection,
            ws="none",
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # or anybody could claim another address than his own
            timeout_keep_alive=round(limits.idle_seconds),
            timeout_graceful_shutdown=30,
            h11_max_incomplete_event_size=64 * 1024,
        )
        super().__init__(config)
        self.app, self._sockets, self._limits = app, sockets, limits
        self._on_start = on_start
        silence_senders()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End the event streams first, because they would keep the server waiting."""
        self.app.state.events.close()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        if not self.started:
            return
        self.servers.append(
            Listener(  # type: ignore[arg-type]
                self._sockets,
                self._connection,
                places=self._limits.open_connections(),
                rate=RequestRate(self._limits.rate),
                tls=self.config.ssl,
                handshake_seconds=self._limits.header_seconds,
            )
        )
        self._on_start()

    def _connection(self, on_close: Callable[[], None]) -> asyncio.Protocol:
        return Connection(
            limits=self._limits,
            on_close=on_close,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )


def silence_senders() -> None:
    """For a process that serves: a sender of nonsense must not fill its log, nor the table in
    which Python remembers every warning it has shown."""
    for name in ("PIL", "multipart", "python_multipart"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # its warnings are about malformed requests; its errors are about this service
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"PIL\.")
