"""The client: what it sends again, and what it does not."""

from __future__ import annotations

import httpx2 as httpx
import numpy as np
import pytest

from verse.serve import client as module
from verse.serve.client import Client, ServiceError


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)


def answering(*replies):
    """A transport that gives these replies in turn, and the requests it saw."""
    seen: list[httpx.Request] = []
    left = list(replies)

    def handle(request: httpx.Request) -> httpx.Response:
        request.read()
        seen.append(request)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return httpx.MockTransport(handle), seen


OK = {"seq": 1, "label": "red"}


def test_a_lesson_is_sent_again_with_the_same_key() -> None:
    transport, seen = answering(
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("the answer was lost"),
        httpx.Response(429, headers={"Retry-After": "1"}, json={"detail": "full"}),
        httpx.Response(503, json={"detail": "closing"}),
        httpx.Response(200, json=OK),
    )
    with Client(transport=transport) as client:
        assert client.learn(b"image", "red") == OK
    keys = {request.headers["Idempotency-Key"] for request in seen}
    assert len(seen) == 5 and len(keys) == 1
    bodies = {request.content.count(b"image") for request in seen}
    assert bodies == {2} or len(bodies) == 1


def test_two_lessons_have_two_keys_unless_given() -> None:
    transport, seen = answering(*(httpx.Response(200, json=OK) for _ in range(3)))
    with Client(transport=transport) as client:
        client.learn(b"image", "red")
        client.learn(b"image", "red")
        client.learn(b"image", "red", key="mine")
    first, second, third = (request.headers["Idempotency-Key"] for request in seen)
    assert first != second and third == "mine"


def test_changes_are_not_sent_again_once_received() -> None:
    for call in (
        lambda c: c.undo(1),
        lambda c: c.forget("a"),
        lambda c: c.rename("a", "b"),
        lambda c: c.merge("a", "b"),
    ):
        transport, seen = answering(httpx.ConnectError("refused"), httpx.ReadTimeout("lost"))
        with Client(transport=transport) as client, pytest.raises(ServiceError, match="lost"):
            call(client)
        assert len(seen) == 2


def test_refusals_are_told_at_once() -> None:
    transport, seen = answering(httpx.Response(422, json={"detail": "not an image"}))
    with (
        Client(transport=transport) as client,
        pytest.raises(ServiceError, match="not an image") as e,
    ):
        client.learn(b"image", "red")
    assert e.value.code == 422 and len(seen) == 1
    transport, _ = answering(*(httpx.ConnectError("refused") for _ in range(9)))
    with Client(transport=transport) as client, pytest.raises(ServiceError, match="cannot reach"):
        client.status()
    transport, _ = answering(httpx.Response(500, text="<html>"))
    with Client(transport=transport) as client, pytest.raises(ServiceError, match="answered 500"):
        client.status()


def test_it_speaks_to_the_service(serve, picture) -> None:
    app = serve(token="a-token-of-enough-characters")
    with Client(token="a-token-of-enough-characters") as client:
        client.http = app  # the same interface, without a network
        app.headers["Authorization"] = "Bearer a-token-of-enough-characters"
        assert client.learn(picture(), "a/b".replace("/", " ü "))["seq"] == 1
        assert client.learn(np.zeros((8, 8, 3), np.uint8), "dark")["classes"] == 2
        assert client.predict(picture())["label"] == "a ü b"
        assert [c["taught"] for c in client.classes()] == [1, 1]
        assert client.rename("a ü b", "c")["label"] == "c"
        assert client.merge("c", "dark")["moved"] == 1
        assert client.undo(2)["seq"] == 2
        frame = client.predict(picture())["frame"]
        assert client.learn_frame(frame, "dark")["label"] == "dark"
        client.learn(picture(), "dark")
        seqs = [client.learn(picture(), "dark")["seq"] for _ in range(2)]
        assert [one["seq"] for one in client.undo_many(seqs)["undone"]] == seqs[::-1]
        assert len(client.undo_last(2)["undone"]) == 2
        assert client.forget("dark")["removed"] == 1
        assert client.status()["classes"] == 0
        with pytest.raises(ServiceError, match="not found"):
            client.forget("dark")
