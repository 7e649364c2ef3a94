"""Accepts connections, counted for each address before TLS or a request begins."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from verse.serve.limits import Quota, RequestRate, address_of
from verse.types import BadSetting

BACKLOG = 2048
FULL = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Type: application/json\r\nContent-Length: 34\r\n\r\n"
    b'{"detail": "too many connections"}'
)
Factory = Callable[[Callable[[], None]], asyncio.Protocol]


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets that hold the address, so that nothing else is begun if it is not free."""
    bound: list[socket.socket] = []
    try:
        for family, kind, proto, _, place in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            taken = bound[0].getsockname()[1] if bound else port  # 0 means the same for all
            one = socket.socket(family, kind, proto)
            bound.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((place[0], taken, *place[2:]))
            one.listen(BACKLOG)
            one.setblocking(False)
    except OSError as error:
        for one in bound:
            one.close()
        raise BadSetting(
            f"cannot listen on {host}, port {port} ({error.strerror or error}): is another server "
            "running there? Give another --port, or 0 for any free one"
        ) from error
    return bound


class Listener:
    """Takes connections until it is closed. The rest of a server's interface is uvicorn's.

    Every connection brings a request at least, so an address may make as many a second as requests
    (``rate``). To refuse one here costs less than to read its request.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        factory: Factory,
        *,
        places: Quota,
        rate: RequestRate,
        tls: ssl.SSLContext | None,
        handshake_seconds: float,
    ) -> None:
        self.sockets, self._factory = sockets, factory
        self._places, self._rate = places, rate
        self._tls, self._handshake_seconds = tls, handshake_seconds
        self._tasks = {asyncio.create_task(self._accept(one)) for one in sockets}

    def close(self) -> None:
        """Take no more."""
        for task in self._tasks:
            task.cancel()
        for one in self.sockets:
            one.close()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, peer = await loop.sock_accept(listening)
            except OSError:  # out of file descriptors, or gone before it was accepted
                await asyncio.sleep(0.05)
                continue
            address = address_of(str(peer[0]))
            if self._rate.wait(address) or not self._places.take(address):
                self._refuse(connection)
                continue
            task = asyncio.create_task(self._connect(connection, address))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket, address: str) -> None:
        closed = False

        def close() -> None:
            nonlocal closed
            if not closed:
                closed = True
                self._places.give(address)

        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._factory(close),
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=self._handshake_seconds if self._tls else None,
            )
        except (OSError, asyncio.CancelledError):  # no TLS, not in time, or the server ends
            connection.close()
            close()

    def _refuse(self, connection: socket.socket) -> None:
        if self._tls is None:
            with suppress(OSError):
                connection.send(FULL)
        connection.close()
