"""Events reach a file and a webhook, in order, also when the receiver was away."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from verse.types import BadSetting
from verse.watch.events import Scene, SceneEvent, Sighting
from verse.watch.sinks import QUEUE, JSONLines, Webhook


def make_events(count: int) -> list[SceneEvent]:
    scene = Scene("door", hold=0)
    events = [scene.see(float(i), Sighting(f"label {i}", True, 0.9)) for i in range(count)]
    return [event for event in events if event is not None]


class Receiver:
    def __init__(self, port: int = 0, *, failures: int = 0) -> None:
        receiver = self
        self.labels: list[str] = []
        self.failures = failures

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.failures > 0:
                    receiver.failures -= 1
                    self.send_error(500)
                    return
                receiver.labels.append(json.loads(body)["label"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def wait_for(labels: list[str], count: int) -> None:
    end = time.monotonic() + 90
    while len(labels) < count and time.monotonic() < end:
        time.sleep(0.02)


def test_json_lines_are_appended(tmp_path: Path) -> None:
    for _ in range(2):
        sink = JSONLines(tmp_path / "events.jsonl")
        sink.send(make_events(1)[0])
        sink.close()
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["label"] for line in lines] == ["label 0", "label 0"]


def test_a_webhook_gets_events_in_order_after_failures() -> None:
    receiver = Receiver(failures=2)
    told: list[str] = []
    sink = Webhook(f"http://127.0.0.1:{receiver.port}/", tell=told.append)
    for event in make_events(5):
        sink.send(event)
    wait_for(receiver.labels, 5)
    sink.close()
    receiver.stop()
    assert receiver.labels == [f"label {i}" for i in range(5)]
    assert len(told) == 2 and "trying again" in told[0] and "again" in told[1]


def test_send_does_not_wait_and_the_oldest_are_dropped() -> None:
    told: list[str] = []
    sink = Webhook("http://127.0.0.1:9/", timeout=0.2, tell=told.append)  # nobody listens
    start = time.monotonic()
    for event in make_events(QUEUE + 5):
        sink.send(event)
    assert time.monotonic() - start < 60  # waiting for each delivery would take far longer
    sink.close()
    assert sum("dropped" in line for line in told) >= 4
    assert "could not be delivered" in told[-1]


def test_a_webhook_is_an_address() -> None:
    with pytest.raises(BadSetting, match="http://"):
        Webhook("ftp://example")
