"""Limits for one request, for one address, and for all clients together."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from verse.serve.errors import Busy

MIB = 2**20
ADDRESSES = 10_000  # whose rate is remembered


@dataclass(frozen=True)
class Limits:
    """Sizes are in bytes. With ``per_address`` off, an address may use all of everything.

    ``body`` and ``document`` bound one request (with an image, and without), ``rate`` the requests
    a second of one address (0: any), ``in_flight`` the bodies held at one moment and
    ``connections`` the open ones. A connection has ``header_seconds`` to send a request's headers,
    ``body_seconds`` for its body, may be idle for ``idle_seconds`` between two requests, and must
    take an answer within ``write_seconds``.
    """

    body: int = 16 * MIB
    document: int = 64 * 1024
    rate: float = 200.0
    in_flight: int = 128 * MIB
    in_flight_per_address: int = 40 * MIB
    connections: int = 512
    connections_per_address: int = 64
    listeners: int = 64
    listeners_per_address: int = 16
    header_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 30.0
    write_seconds: float = 30.0
    per_address: bool = True

    def bytes_in_flight(self) -> Quota:
        """One largest body always fits."""
        total = max(self.in_flight, 2 * self.body)
        return self._quota(total, max(self.in_flight_per_address, self.body))

    def open_connections(self) -> Quota:
        return self._quota(self.connections, self.connections_per_address)

    def open_listeners(self) -> Quota:
        return self._quota(self.listeners, self.listeners_per_address)

    def _quota(self, total: int, share: int) -> Quota:
        return Quota(total, share if self.per_address else total)


def address_of(host: str) -> str:
    """Whom an address counts as: an IPv6 host owns its whole /64.

    >>> address_of("10.0.0.1"), address_of("::ffff:10.0.0.1"), address_of("2001:db8::1:2")
    ('10.0.0.1', '10.0.0.1', '2001:db8::')
    """
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        if not ip.is_loopback:
            return str(ipaddress.ip_address(int(ip) >> 64 << 64))
    return str(ip)


class Quota:
    """A limit in total and one for each address. One thread only.

    >>> quota = Quota(total=10, share=6)
    >>> quota.take("a", 6), quota.take("a", 1), quota.take("b", 4), quota.take("c", 1)
    (True, False, True, False)
    >>> quota.give("a", 6)
    >>> quota.take("c", 1), quota.used
    (True, 5)
    """

    def __init__(self, total: int, share: int) -> None:
        self.total, self.share = total, share
        self.used = 0
        self._of: Counter[str] = Counter()

    @property
    def addresses(self) -> frozenset[str]:
        """Those that have taken something."""
        return frozenset(self._of)

    def of(self, address: str) -> int:
        """What an address has taken."""
        return self._of.get(address, 0)

    def has(self, address: str, n: int = 1) -> bool:
        """Can this address take ``n`` more?"""
        return self.used + n <= self.total and self.of(address) + n <= self.share

    def take(self, address: str, n: int = 1) -> bool:
        """Take it if it is there."""
        if not self.has(address, n):
            return False
        self.used += n
        self._of[address] += n
        return True

    def give(self, address: str, n: int = 1) -> None:
        """Give it back."""
        self.used -= n
        self._of[address] -= n
        if not self._of[address]:
            del self._of[address]


class RequestRate:
    """Requests a second of each address: a bucket that holds one second's."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Count a request: 0 if it may pass, or the seconds until it may."""
        if self.rate <= 0:
            return 0.0
        now, full = time.monotonic(), max(1.0, self.rate)
        tokens, last = self._buckets.pop(address, (full, now))
        tokens = min(full, tokens + (now - last) * self.rate)
        enough = tokens >= 1
        self._buckets[address] = (tokens - 1 if enough else tokens, now)
        if len(self._buckets) > ADDRESSES:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (1 - tokens) / self.rate


class Turns:
    """At most ``share`` of each address at once; the others of that address wait for their turn.

    So one address cannot fill a queue that all clients share. More than ``waiting`` are refused.
    """

    def __init__(self, what: str, *, share: int, waiting: int) -> None:
        self.what, self.share, self.waiting = what, share, waiting
        self._active: Counter[str] = Counter()
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}

    @property
    def addresses(self) -> frozenset[str]:
        """Those that have a turn or wait for one."""
        return frozenset((*self._active, *self._queues))

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        await self._enter(address)
        try:
            yield
        finally:
            self._leave(address)

    async def _enter(self, address: str) -> None:
        if self._active[address] < self.share:
            self._active[address] += 1
            return
        queue = self._queues.setdefault(address, deque())
        if len(queue) >= self.waiting:
            raise Busy(self.what, 1)
        place = asyncio.get_running_loop().create_future()
        queue.append(place)
        try:
            await place  # whoever leaves hands over the turn
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave(address)
            elif place in queue:
                queue.remove(place)
            raise

    def _leave(self, address: str) -> None:
        queue = self._queues.get(address, deque())
        while queue:
            place = queue.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._queues.pop(address, None)
        self._active[address] -= 1
        if not self._active[address]:
            del self._active[address]
