"""Access control: the token, the host name, the origin. See docs/security.md."""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from verse.types import BadSetting

SHORTEST_TOKEN = 16
OPEN = frozenset({"/healthz", "/readyz"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Access:
    """Access control.

    ``token`` is needed to learn and delete; with ``private`` to look and ask, too. ``hosts`` are
    the names under which the service may be called; with ``any_address`` any IP address is one. A
    page of another site can make its own name point to this machine, but not an IP address.

    >>> Access.to_serve("0.0.0.0", token=None)
    Traceback (most recent call last):
    ...
    verse.types.BadSetting: 0.0.0.0 can be reached by others: give a token ...
    """

    token: bytes | None = None
    private: bool = False
    hosts: frozenset[str] = LOOPBACK
    any_address: bool = False

    @classmethod
    def to_serve(
        cls,
        host: str,
        token: str | None,
        *,
        private: bool = False,
        allowed_hosts: Iterable[str] = (),
    ) -> Access:
        """The access rules for an address to listen on."""
        if private and token is None:
            raise BadSetting("--private needs a token: give --token-file or VERSE_TOKEN")
        secret = token.encode() if token is not None else None
        named = LOOPBACK | {host.lower()} | {name.lower().rstrip(".") for name in allowed_hosts}
        if is_loopback(host):
            return cls(secret, private, named)
        if secret is None:
            raise BadSetting(
                f"{host} can be reached by others: give a token (--token-file FILE, or the "
                "environment variable VERSE_TOKEN), or serve on 127.0.0.1"
            )
        own = socket.gethostname().lower()
        return cls(secret, private, named | {own, f"{own}.local"}, any_address=True)

    def knows(self, host: str) -> bool:
        """Is this one of its names (a Host header)?"""
        name = host_name(host)
        return name in self.hosts or (self.any_address and is_address(name))

    def needs_token(self, method: str, path: str) -> bool:
        """Not the page, which contains no secret, nor the health checks."""
        if path in OPEN or not (path.startswith("/v1/") or path == "/metrics"):
            return False
        reads = method in ("GET", "HEAD") or path == "/v1/predict"
        return self.token is not None and (self.private or not reads)

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


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets.

    >>> host_name("localhost:8000"), host_name("[::1]:8000")
    ('localhost', '::1')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    """Is it an IP address, not a name?"""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def origin_host(origin: str) -> str:
    """Host and port of an Origin header."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""
