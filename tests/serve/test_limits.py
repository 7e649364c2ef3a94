"""One client cannot stop the others: time, bytes, connections and turns of each address."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from tests.serve.test_tls import self_signed
from verse.serve import connection
from verse.serve.app import create_app
from verse.serve.errors import Busy
from verse.serve.limits import Limits, Quota, RequestRate, Turns, address_of
from verse.serve.listener import open_sockets
from verse.serve.server import Server
from verse.types import BadSetting

HOST = "Host: 127.0.0.1\r\n"
FORM = "Content-Type: multipart/form-data; boundary=x\r\n"
SLOW = 60.0  # seconds that a busy machine may need; the limits under test are far below


@pytest.fixture
def servers() -> list[tuple[Server, threading.Thread]]:
    """Those that ``running`` has started."""
    return []


@pytest.fixture
def running(session, servers) -> Iterator[Callable[..., int]]:
    """``running(header_seconds=…)``: the real server in a thread; returns its port."""

    def start(certificate: str | None = None, key: str | None = None, **limits: float) -> int:
        allowed = Limits(**{"rate": 0.0, **limits})  # type: ignore[arg-type]
        sockets, begun = open_sockets("127.0.0.1", 0), threading.Event()
        server = Server(
            create_app(session, limits=allowed, decoders=1),
            sockets,
            limits=allowed,
            tls_cert=certificate,
            tls_key=key,
            on_start=begun.set,
        )
        thread = threading.Thread(target=server.run)
        thread.start()
        servers.append((server, thread))
        port = int(sockets[0].getsockname()[1])
        assert begun.wait(60)
        return port

    yield start
    for server, thread in servers:
        server.should_exit = server.force_exit = True
        server.app.state.events.close()
        thread.join(60)
        assert not thread.is_alive()
    session.close()


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), SLOW, source_address=(address, 0))


def status(one: socket.socket) -> int | None:
    """The code that was answered; None if the connection was closed without a word."""
    try:
        line = one.makefile("rb").readline()
    except ConnectionError:
        return None
    return int(line.split()[1]) if line else None


def trickle(one: socket.socket) -> None:
    """Send byte after byte until the connection is closed."""
    end = time.monotonic() + SLOW
    try:
        while time.monotonic() < end:
            one.sendall(b"x")
            time.sleep(0.05)
    except OSError:
        return
    raise AssertionError("it is still open")


def get(port: int, address: str = "127.0.0.1") -> int | None:
    with connect(port, address) as one:
        one.sendall(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode())
        return status(one)


def wait_until(happened: Callable[[], object]) -> None:
    end = time.monotonic() + SLOW
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_silent_connections_and_slow_headers_are_closed(running) -> None:
    port = running(header_seconds=1.0)
    begin = time.monotonic()
    with connect(port) as silent, connect(port) as slow:
        slow.sendall(f"GET /healthz HTTP/1.1\r\n{HOST}".encode())
        trickle(slow)  # bytes that keep coming prolong nothing
        assert time.monotonic() - begin > 0.9
        assert status(silent) is None
    wait_until(lambda: get(port) == 200)  # a busy machine may miss the limit itself


def test_slow_headers_of_a_later_request_are_no_better(running) -> None:
    port = running(header_seconds=1.0)
    request = f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode()

    def closed() -> bool:
        with connect(port) as one, one.makefile("rb") as reader:
            one.sendall(request)
            if b"200" not in reader.readline():
                return False  # a busy machine was too slow for the first one
            time.sleep(1.2)  # idle is another limit
            one.sendall(b"GET /he")
            while reader.readline():
                pass
            return True

    wait_until(closed)


def test_idle_connections_are_closed(running) -> None:
    port = running(idle_seconds=1)
    with connect(port) as one:
        one.sendall(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode())
        assert one.makefile("rb").read().startswith(b"HTTP/1.1 200")  # read to its end


def test_slow_bodies_are_answered_and_closed(running, monkeypatch) -> None:
    monkeypatch.setattr(connection, "GRACE", 0.3)
    port = running(body_seconds=0.5)
    with connect(port) as one:
        one.sendall(f"POST /v1/predict HTTP/1.1\r\n{HOST}{FORM}Content-Length: 99\r\n\r\n".encode())
        assert status(one) == 408
    with connect(port) as one:  # one that is refused at once, and goes on
        one.sendall(
            f"POST /v1/predict HTTP/1.1\r\nHost: elsewhere\r\n{FORM}"
            "Content-Length: 999999\r\n\r\n".encode()
        )
        assert status(one) == 421
        trickle(one)


def test_one_address_has_so_many_connections(running) -> None:
    port = running(connections_per_address=3, connections=5)
    mine = [connect(port) for _ in range(3)]
    for one in mine:
        one.sendall(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode())
        assert status(one) == 200
    assert get(port) == 429
    assert get(port, "127.0.0.2") == 200  # another address is not disturbed
    mine.pop().close()
    wait_until(lambda: get(port) == 200)
    for one in mine:
        one.close()


def test_one_address_makes_so_many_connections_a_second(running, monkeypatch) -> None:
    now = SimpleNamespace(monotonic=lambda: 1000.0)  # a second without end
    monkeypatch.setattr("verse.serve.limits.time", now)
    port = running(rate=5.0)
    for _ in range(5):
        connect(port).close()
    with connect(port) as refused:
        assert status(refused) == 429  # it has not even asked
    assert get(port, "127.0.0.2") == 200  # another address is not disturbed


def test_one_address_has_so_many_bytes_in_flight(running, monkeypatch) -> None:
    counted = threading.Event()
    take = Quota.take

    def seen(quota: Quota, address: str, n: int = 1) -> bool:
        try:
            return take(quota, address, n)
        finally:
            if n == 900:
                counted.set()

    monkeypatch.setattr(Quota, "take", seen)
    port = running(body=1000, in_flight_per_address=1500, in_flight=2500)
    head = f"POST /v1/predict HTTP/1.1\r\n{HOST}{FORM}Content-Length: 900\r\n\r\n".encode()
    with connect(port) as first, connect(port) as second, connect(port, "127.0.0.2") as other:
        first.sendall(head + b"x" * 100)
        assert counted.wait(SLOW)
        second.sendall(head)
        assert status(second) == 429
        other.sendall(head + b"x" * 900)
        assert status(other) == 400  # it was read: no form, but that is another matter
        first.sendall(b"x" * 800)
        assert status(first) == 400
    with connect(port) as third:  # given back
        third.sendall(head + b"x" * 900)
        assert status(third) == 400


def test_a_chunked_body_counts_as_it_comes(running) -> None:
    port = running(body=1000)
    chunk = b"190\r\n" + b"x" * 400 + b"\r\n"
    with connect(port) as one:
        head = f"POST /v1/predict HTTP/1.1\r\n{HOST}{FORM}Transfer-Encoding: chunked\r\n\r\n"
        one.sendall(head.encode() + chunk * 3)
        assert status(one) == 413


def test_listeners_are_counted_in_one_step(running) -> None:
    port = running(listeners=5, listeners_per_address=4)
    request = f"GET /v1/events HTTP/1.1\r\n{HOST}\r\n".encode()
    for address, expected in (("127.0.0.1", 4), ("127.0.0.2", 1)):
        several = [connect(port, address) for _ in range(12)]
        for one in several:
            one.sendall(request)
        codes = [status(one) for one in several]
        assert codes.count(200) == expected and codes.count(429) == 12 - expected
        if address == "127.0.0.1":
            kept = several  # they go on listening
    for one in (*several, *kept):
        one.close()
    deadline = time.monotonic() + SLOW
    while True:  # their places are free again
        with connect(port) as one:
            one.sendall(request)
            if status(one) == 200:
                break
        assert time.monotonic() < deadline


def test_who_does_not_take_an_answer_is_let_go(running, servers) -> None:
    port = running(write_seconds=0.5)
    with connect(port) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(f"GET /v1/events HTTP/1.1\r\n{HOST}\r\n".encode())
        assert one.recv(100)
        events, deadline = servers[0][0].app.state.events, time.monotonic() + SLOW
        while events.listeners:
            events.send("status", {"padding": "x" * 100_000})
            time.sleep(0.02)
            assert time.monotonic() < deadline


def test_silence_instead_of_a_handshake_is_counted_and_closed(running, tmp_path) -> None:
    port = running(*self_signed(tmp_path), header_seconds=1.0, connections_per_address=2)
    with connect(port) as silent, connect(port) as plain, connect(port) as third:
        assert status(third) is None  # counted before TLS begins
        plain.sendall(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode())
        assert status(plain) is None
        assert status(silent) is None
    trusting = ssl.create_default_context(cafile=str(tmp_path / "own.pem"))
    deadline = time.monotonic() + SLOW
    while True:
        try:
            with trusting.wrap_socket(connect(port), server_hostname="127.0.0.1") as one:
                one.sendall(f"GET /healthz HTTP/1.1\r\n{HOST}\r\n".encode())
                assert status(one) == 200
                break
        except OSError:
            assert time.monotonic() < deadline


def test_a_port_in_use_is_one_sentence() -> None:
    (taken,) = open_sockets("127.0.0.1", 0)
    with pytest.raises(BadSetting, match="another server"):
        open_sockets("127.0.0.1", taken.getsockname()[1])
    taken.close()
    both = open_sockets("localhost", 0)
    assert len({one.getsockname()[1] for one in both}) == 1
    for one in both:
        one.close()


def test_turns_of_one_address_do_not_hold_up_another() -> None:
    async def run() -> list[str]:
        turns, order = Turns("predict", share=1, waiting=2), []
        gate = asyncio.Event()

        async def one(address: str, name: str) -> None:
            async with turns.turn(address):
                order.append(name)
                if name == "a1":
                    await gate.wait()

        tasks = [asyncio.create_task(one("a", f"a{i}")) for i in (1, 2, 3)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await one("a", "a4")
        await one("b", "b1")
        tasks[1].cancel()  # who waits may go
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        await one("a", "a5")
        assert not turns.addresses
        return order

    assert asyncio.run(run()) == ["a1", "b1", "a3", "a5"]


def test_quotas_rates_and_addresses() -> None:
    quota = Limits(per_address=False, connections=3, connections_per_address=1).open_connections()
    assert [quota.take("a") for _ in range(4)] == [True, True, True, False]
    large = Limits(body=200 * 2**20).bytes_in_flight()
    assert large.take("a", 200 * 2**20)  # one largest body always fits
    empty = Quota(1, 1)
    empty.take("a")
    empty.give("a")
    assert not empty.addresses  # addresses that left are forgotten
    rate = RequestRate(1.0)
    assert rate.wait("a") == 0 and rate.wait("a") > 0 and rate.wait("b") == 0
    assert address_of("2001:db8::1") == address_of("2001:db8::2:3")
    assert address_of("fe80::1%eth0") == address_of("fe80::2") and address_of("?") == "?"
    assert address_of("::1") == "::1"
