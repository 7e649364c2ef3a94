"""The real server in a process of its own: started, listened to, terminated, killed."""

from __future__ import annotations

import io
import signal
import socket
import threading

import httpx2
import numpy as np
import pytest
import torch
from PIL import Image

import verse
from verse import StreamClassifier
from verse.serve.client import Client, ServiceError

pytestmark = pytest.mark.slow


def test_events_and_a_graceful_end(launch, picture, tmp_path, backbone) -> None:
    server, url = launch(tmp_path / "d")
    heard: list[tuple[str, dict]] = []
    first = threading.Event()

    def listen() -> None:
        with Client(url) as client:
            for kind, data in client.events():
                heard.append((kind, data))
                first.set()

    listener = threading.Thread(target=listen)
    listener.start()
    assert first.wait(120)
    with Client(url) as client:
        client.learn(picture(), "red")
        client.learn(picture("blue"), "blue")
        client.undo(2)
    server.send_signal(signal.SIGTERM)
    assert server.wait(120) in (0, -signal.SIGTERM)
    listener.join(120)
    assert not listener.is_alive()
    kinds = [kind for kind, _ in heard]
    assert kinds[0] == "status" and kinds.count("learned") == 2 and kinds.count("undone") == 1
    assert not list((tmp_path / "d").glob("*-wal"))
    with verse.open(tmp_path / "d", backbone=backbone) as again:
        assert (
            again.samples == 1
            and again.write_ahead.state.position == again.write_ahead.timing.saved
        )


def test_killed_while_a_client_teaches(launch, picture, tmp_path, backbone) -> None:
    """Nothing acknowledged is lost, nothing learned twice, the bits are those of a clean run."""
    rng = np.random.default_rng(0)
    pictures = [(picture(c, t), c) for t in range(6) for c in ("red", "green", "blue")]
    acknowledged: dict[int, int] = {}
    for _ in range(2):
        server, url = launch(tmp_path / "d")
        stop = int(rng.integers(2, 9))
        killer = None
        with Client(url, retries=0) as client:
            for i, (image, label) in enumerate(pictures):
                if len(acknowledged) and i == stop:
                    killer = threading.Timer(float(rng.uniform(0, 0.05)), server.kill)
                    killer.start()
                try:
                    seq = client.learn(image, label, key=f"lesson {i}")["seq"]
                except ServiceError:
                    break
                assert acknowledged.setdefault(i, seq) == seq
        server.kill()
        server.wait()
        if killer is not None:
            killer.join()
    with verse.open(tmp_path / "d", backbone=backbone) as again:
        entries = [e for e in again.journal.since(0) if e.fate == "kept"]
        n = again.samples
        assert len(entries) == n and len(acknowledged) <= n <= len(acknowledged) + 1
        clean = StreamClassifier(backbone=backbone)
        for image, label in pictures[:n]:
            clean.learn_one(image, label)
        a, b = again.learner.state(), clean.learner.state()
        assert all(torch.equal(a[k], b[k]) for k in b)


def test_nonsense_does_not_fill_the_log(launch, tmp_path) -> None:
    server, url = launch(tmp_path / "d")
    damaged = io.BytesIO()  # compressed: libtiff itself writes to the standard error
    Image.new("RGB", (40, 40)).save(damaged, "TIFF", compression="tiff_lzw")
    content = damaged.getvalue()
    shape = {"Content-Type": "multipart/form-data; boundary=x"}
    with httpx2.Client(base_url=url) as client:
        for at in range(0, len(content), 97):
            broken = content[:at] + bytes([255]) * 9 + content[at + 9 :]
            assert client.post("/v1/predict", files={"image": broken}).status_code in (200, 422)
        assert client.post("/v1/learn", content=b"--y\r\n", headers=shape).status_code == 400
        upgrade = {"Connection": "upgrade", "Upgrade": "h2c"}
        assert client.get("/healthz", headers=upgrade).status_code == 200
    host, _, port = url.removeprefix("http://").partition(":")
    for junk in (b"\x16\x03\x01\0\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nbad\r\n\r\n"):
        with socket.create_connection((host, int(port)), 60) as plain:
            plain.sendall(junk)
            assert plain.recv(100)[9:12] == b"400"
    server.send_signal(signal.SIGTERM)
    server.wait(120)
    assert server.stderr is not None and server.stderr.read() == ""
