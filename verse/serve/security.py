"""Who may do what, and how much: the guard in front of every route. See docs/security.md."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import os
import time
import unicodedata
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from verse.types import BadLabel, BadSetting

MIB = 2**20
LONGEST_LABEL = 100
SHORTEST_TOKEN = 16
BODY_SECONDS = 30
CLIENTS = 10_000  # addresses whose rate is remembered
OPEN = frozenset({"/healthz", "/readyz", "/v1/status"})
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


@dataclass(frozen=True)
class Limits:
    """What one request, and one client, may cost. ``rate`` is requests per second (0: any)."""

    body: int = 16 * MIB
    document: int = 64 * 1024
    rate: float = 200.0


@dataclass(frozen=True)
class Access:
    """``token`` is needed to learn and delete; with ``private`` to look and ask, too.

    ``hosts`` are the names under which the service may be called (None: any): a page of another
    site cannot reach a service on this machine by pointing its own name at it.

    >>> Access.to_serve("0.0.0.0", token=None)
    Traceback (most recent call last):
    ...
    verse.types.BadSetting: 0.0.0.0 can be reached by others: give a token ...
    """

    token: bytes | None = None
    private: bool = False
    hosts: frozenset[str] | None = frozenset({"localhost", "127.0.0.1", "::1"})

    @classmethod
    def to_serve(cls, host: str, token: str | None, *, private: bool = False) -> Access:
        """The access rules for an address to listen on."""
        if private and token is None:
            raise BadSetting("a token for asking needs a token: give --token-file or VERSE_TOKEN")
        secret = token.encode() if token is not None else None
        if is_loopback(host):
            return cls(secret, private, cls.hosts)
        if secret is None:
            raise BadSetting(
                f"{host} can be reached by others: give a token (--token-file FILE, or the "
                "environment variable VERSE_TOKEN), or serve on 127.0.0.1"
            )
        return cls(secret, private, None)

    def allows(self, headers: Headers) -> bool:
        if self.token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        # compared in constant time, whatever was sent
        same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self.token)
        return same and scheme.lower() == "bearer"


def is_loopback(host: str) -> bool:
    """Can only this machine reach the address?

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(file: Path | None) -> str | None:
    """The token of a file, or of the environment variable VERSE_TOKEN; None if there is none."""
    if file is not None:
        try:
            token = file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise BadSetting(f"cannot read the token file {file}: {error}") from error
    else:
        token = os.environ.get("VERSE_TOKEN", "").strip()
        if not token:
            return None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise BadSetting(
            f"the token must be {SHORTEST_TOKEN} or more printable ASCII characters; for example: "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    return token


def clean_label(text: str) -> str:
    """A label as the service takes it; what could harm a page, a log or a path is refused.

    >>> clean_label(" mug ")
    'mug'
    >>> clean_label("../mug")
    Traceback (most recent call last):
    ...
    verse.types.BadLabel: a label must not contain / or \\
    """
    label = unicodedata.normalize("NFC", text).strip()
    if not label:
        raise BadLabel("a label must not be empty")
    if len(label) > LONGEST_LABEL:
        raise BadLabel(f"a label has at most {LONGEST_LABEL} characters, not {len(label)}")
    if "/" in label or "\\" in label:
        raise BadLabel("a label must not contain / or \\")
    if label in (".", ".."):
        raise BadLabel("a label must not be . or ..")
    # control, surrogate, private and unassigned characters, and those that turn text around
    if any(unicodedata.category(c).startswith("C") and c != "\u200d" for c in label):
        raise BadLabel("a label must not contain control or invisible characters")
    return label


class Guard:
    """The ASGI layer that refuses what the rules forbid before any route sees it."""

    def __init__(self, app: ASGIApp, *, access: Access, limits: Limits) -> None:
        self.app, self.access, self.limits = app, access, limits
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if scope["path"].startswith("/v1/") and "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None and scope["method"] in ("GET", "HEAD"):
            await self.app(scope, receive, guarded_send)
            return
        if refusal is None:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await self._body(scope, receive)
            except TimeoutError:
                refusal = (408, "the body did not arrive in time", {"Connection": "close"})
            else:
                if body is None:
                    refusal = (413, "the request is too large", {"Connection": "close"})
                else:
                    await self.app(scope, _replay(body, receive), guarded_send)
                    return
        await _answer(guarded_send, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, str, dict[str, str]] | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.access.hosts is not None and host_name(host) not in self.access.hosts:
            return 421, "this service is not known by that name; call it by its address", {}
        origin = headers.get("origin")
        changes = scope["method"] not in ("GET", "HEAD")
        if changes and origin is not None and origin_host(origin) != host.lower():
            return 403, "requests from pages of another site are refused", {}
        wait = self._wait(scope["client"][0] if scope.get("client") else "")
        if wait > 0:
            return 429, "too many requests", {"Retry-After": str(int(wait) + 1)}
        if self._needs_token(scope) and not self.access.allows(headers):
            return 401, "a token is needed: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"}
        return None

    def _needs_token(self, scope: Scope) -> bool:
        path: str = scope["path"]
        if path in OPEN or not (path.startswith("/v1/") or path == "/metrics"):
            return False  # the page itself holds no secret
        reads = scope["method"] in ("GET", "HEAD") or path == "/v1/predict"
        return self.access.private or not reads

    def _wait(self, client: str) -> float:
        """Seconds until this client may come again: a bucket that holds one second's requests."""
        rate = self.limits.rate
        if rate <= 0:
            return 0.0
        now = time.monotonic()
        tokens, last = self._buckets.pop(client, (max(1.0, rate), now))
        tokens = min(max(1.0, rate), tokens + (now - last) * rate)
        enough = tokens >= 1
        self._buckets[client] = (tokens - 1 if enough else tokens, now)
        if len(self._buckets) > CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if enough else (1 - tokens) / rate

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None if it is larger than its kind may be."""
        headers = Headers(scope=scope)
        form = headers.get("content-type", "").lower().startswith("multipart/form-data")
        limit = self.limits.body if form else self.limits.document
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limit:
            return None
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                return None
            more = message.get("more_body", False)
        return b"".join(parts)


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets.

    >>> host_name("localhost:8000"), host_name("[::1]:8000")
    ('localhost', '::1')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def origin_host(origin: str) -> str:
    """Host and port of an Origin header."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replayed() -> Message:
        nonlocal sent
        if not sent:
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return replayed


async def _answer(send: Send, status: int, message: str, headers: dict[str, str]) -> None:
    body = json.dumps({"detail": message}).encode()
    shown: list[Any] = [(k.lower().encode(), v.encode()) for k, v in headers.items()]
    shown += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": shown})
    await send({"type": "http.response.body", "body": body})
