"""Who may do what: tokens, names, origins, sizes and rates."""

from __future__ import annotations

import socket

import pytest

from verse.serve.access import Access, is_loopback, read_token
from verse.types import BadSetting

TOKEN = "a-token-of-enough-characters"


def learn(client, image: bytes, **headers: str):
    return client.post("/v1/learn", files={"image": image}, data={"label": "red"}, headers=headers)


def test_a_token_is_needed_to_learn_and_delete(serve, picture) -> None:
    client = serve(token=TOKEN)
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {TOKEN}x"},
    ):
        refused = learn(client, picture(), **headers)
        assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
        assert client.delete("/v1/samples/1", headers=headers).status_code == 401
        assert client.delete("/v1/classes/red", headers=headers).status_code == 401
        assert (
            client.post("/v1/classes/red/rename", json={"to": "x"}, headers=headers).status_code
            == 401
        )
    assert learn(client, picture(), Authorization=f"Bearer {TOKEN}").status_code == 200
    assert client.post("/v1/predict", files={"image": picture()}).status_code == 200
    assert client.get("/v1/classes").status_code == 200
    assert client.get("/v1/status").json()["auth"] == {"learn": True, "predict": False}


def test_private_needs_it_for_everything_but_health(serve, picture) -> None:
    client = serve(token=TOKEN, private=True)
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    for path in (
        "/v1/status",
        "/v1/classes",
        "/v1/learner",
        "/v1/events",
        "/v1/samples/1/thumbnail",
        "/metrics",
    ):
        assert client.get(path).status_code == 401
    assert client.post("/v1/predict", files={"image": picture()}).status_code == 401
    allowed = {"Authorization": f"bearer {TOKEN}"}
    assert client.get("/v1/classes", headers=allowed).status_code == 200
    status = client.get("/v1/status", headers=allowed).json()
    assert status["auth"] == {"learn": True, "predict": True}


def test_another_sites_page_cannot_use_it(serve, picture) -> None:
    client = serve()
    for origin in ("https://evil.example", "null", "http://127.0.0.1:9999", "http://["):
        assert learn(client, picture(), Origin=origin).status_code == 403
    assert learn(client, picture(), Origin="http://127.0.0.1:8700").status_code == 200


def test_another_name_for_this_machine_is_refused(serve) -> None:
    client = serve()
    for host in ("evil.example", "evil.example:8700", "127.0.0.1.evil.example", "", "["):
        assert client.get("/v1/status", headers={"Host": host}).status_code == 421
    for host in ("localhost:8700", "127.0.0.1", "[::1]:8700", "LOCALHOST"):
        assert client.get("/v1/status", headers={"Host": host}).status_code == 200


def test_on_other_addresses_only_addresses_and_own_names_are_answered() -> None:
    """A page of another site can point its own name at this machine, but not an IP address."""
    access = Access.to_serve("0.0.0.0", TOKEN, allowed_hosts=["Robot.Example."])
    for host in (
        "192.168.1.20:8700",
        "[2001:db8::1]:8700",
        "localhost",
        "robot.example:443",
        socket.gethostname(),
        f"{socket.gethostname()}.local:8700",
    ):
        assert access.knows(host), host
    for host in ("evil.example", "192.168.1.20.evil.example", "", "[", "robot.example.evil"):
        assert not access.knows(host), host
    assert not Access.to_serve("127.0.0.1", None).knows("192.168.1.20")
    assert Access.to_serve("127.0.0.5", None).knows("127.0.0.5:1")


def test_sizes_are_limited(serve, picture, session) -> None:
    client = serve(body=100_000)
    assert learn(client, b"x" * 200_000).status_code == 413
    assert client.post("/v1/classes/x/rename", content=b" " * 70_000).status_code == 413

    def endless():
        for _ in range(1000):
            yield b"x" * 1000

    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    assert client.post("/v1/predict", content=endless(), headers=kind).status_code == 413
    assert learn(client, picture()).status_code == 200


def test_rates_are_limited(serve) -> None:
    client = serve(rate=0.01)
    codes = [client.get("/v1/status").status_code for _ in range(4)]
    assert codes == [200, 429, 429, 429]
    assert 90 < int(client.get("/v1/status").headers["retry-after"]) <= 100


def test_every_answer_carries_the_safe_headers(serve) -> None:
    client = serve(token=TOKEN)
    for answer in (
        client.get("/v1/status"),
        client.get("/nothing"),
        client.delete("/v1/samples/1"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert client.get("/v1/status").headers["cache-control"] == "no-store"


def test_addresses() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "127.9.9.9"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"))
    with pytest.raises(BadSetting, match="give a token"):
        Access.to_serve("0.0.0.0", None)
    with pytest.raises(BadSetting, match="needs a token"):
        Access.to_serve("127.0.0.1", None, private=True)
    assert Access.to_serve("127.0.0.1", None).token is None


def test_tokens_come_from_a_file_or_the_environment(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("VERSE_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("VERSE_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}-2\n")
    assert read_token(file) == f"{TOKEN}-2"
    for bad in ("short", "", "ü" * 20, "with\ttab" * 4):
        file.write_text(bad)
        with pytest.raises(BadSetting, match="16 or more"):
            read_token(file)
    file.write_bytes(b"\xff" * 20)
    with pytest.raises(BadSetting, match="cannot read"):
        read_token(file)
