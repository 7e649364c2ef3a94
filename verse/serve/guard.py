"""The ASGI layer that refuses what the rules forbid before any route sees it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verse.serve.access import Access, origin_host
from verse.serve.limits import Limits, Quota, RequestRate, address_of

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "media-src 'self' blob:; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Refusal(Exception):
    """An answer instead of the route's."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}

    async def send(self, send: Send) -> None:
        body = json.dumps({"detail": self.detail}).encode()
        headers: list[Any] = [(k.lower().encode(), v.encode()) for k, v in self.headers.items()]
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@dataclass
class _Body:
    """What has arrived of a body, and what its address has taken of the quota for it."""

    quota: Quota
    address: str
    reserved: int = 0
    size: int = 0
    parts: deque[bytes] = field(default_factory=deque)

    def reserve(self, n: int) -> None:
        if n > self.reserved:
            if not self.quota.take(self.address, n - self.reserved):
                close = {"Retry-After": "1", "Connection": "close"}
                raise Refusal(429, "too many large requests at once: try again in 1 s", close)
            self.reserved = n

    def release(self) -> None:
        self.parts.clear()
        self.quota.give(self.address, self.reserved)
        self.reserved = 0


class Guard:
    """Checks host, origin, rate, token and size of a request, and reads its body.

    A route sees a request only when its body is there: no route waits for slow bytes.
    """

    def __init__(self, app: ASGIApp, *, access: Access, limits: Limits) -> None:
        self.app, self.access, self.limits = app, access, limits
        self._rate = RequestRate(limits.rate)
        self._in_flight = limits.bytes_in_flight()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        address = address_of(scope["client"][0] if scope.get("client") else "")
        scope["verse.address"] = address
        send_guarded = _with_headers(scope, send)
        try:
            self._check(scope, address)
            if scope["method"] in ("GET", "HEAD"):
                await self.app(scope, receive, send_guarded)
            else:
                await self._pass_on(scope, receive, send_guarded, address)
        except Refusal as refusal:
            await refusal.send(send_guarded)

    def _check(self, scope: Scope, address: str) -> None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.access.knows(host):
            raise Refusal(
                421, "host not allowed: use the IP address, or start with --allow-host NAME"
            )
        changes = scope["method"] not in ("GET", "HEAD")
        if changes and origin is not None and origin_host(origin) != host.lower():
            raise Refusal(403, "origin not allowed: pages of another site cannot use this service")
        wait = self._rate.wait(address)
        if wait > 0:
            raise Refusal(429, "too many requests", {"Retry-After": str(int(wait) + 1)})
        needs = self.access.needs_token(scope["method"], scope["path"])
        if needs and not self.access.allows(headers):
            bearer = {"WWW-Authenticate": "Bearer"}
            raise Refusal(401, "a token is needed: Authorization: Bearer …", bearer)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, address: str) -> None:
        body = _Body(self._in_flight, address)
        try:
            try:
                async with asyncio.timeout(self.limits.body_seconds):
                    complete = await self._read(scope, receive, body)
            except TimeoutError:
                close = {"Connection": "close"}
                raise Refusal(408, "the body did not arrive in time", close) from None
            if complete:
                await self.app(scope, _replay(body.parts, receive), send)
        finally:
            body.release()

    async def _read(self, scope: Scope, receive: Receive, body: _Body) -> bool:
        """The whole body; False if who sent it has gone."""
        headers = Headers(scope=scope)
        form = headers.get("content-type", "").lower().startswith("multipart/form-data")
        limit = self.limits.body if form else self.limits.document
        too_large = Refusal(
            413, f"the request is too large: at most {limit} bytes", {"Connection": "close"}
        )
        length = headers.get("content-length", "0")
        if length.isdecimal():
            if len(length) > 15 or int(length) > limit:
                raise too_large
            body.reserve(int(length))
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            part = message.get("body", b"")
            body.size += len(part)
            if body.size > limit:
                raise too_large
            body.reserve(body.size)
            body.parts.append(part)
            more = message.get("more_body", False)
        return True


def _with_headers(scope: Scope, send: Send) -> Send:
    async def send_guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if scope["path"].startswith("/v1/") and "cache-control" not in headers:
                headers["Cache-Control"] = "no-store"
        await send(message)

    return send_guarded


def _replay(parts: deque[bytes], receive: Receive) -> Receive:
    """Hand over the parts one by one, so that none is in memory twice."""

    async def receive_again() -> Message:
        with suppress(IndexError):
            part = parts.popleft()
            return {"type": "http.request", "body": part, "more_body": bool(parts)}
        return await receive()

    return receive_again
