"""A served classifier: real routes, threads and features."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

import verse
from verse import backbones
from verse.backbones import Backbone
from verse.serve.access import LOOPBACK, Access
from verse.serve.app import create_app
from verse.serve.limits import Limits
from verse.serve.pictures import Picture
from verse.serve.session import Session

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


@pytest.fixture(scope="session")
def backbone() -> Backbone:
    return backbones.build("efficientnet-lite0", at="fc")


@pytest.fixture(scope="session")
def picture() -> Callable[..., bytes]:
    """``picture("red", 3)``: a noisy square of a colour as PNG; another seed, other noise."""

    def paint(label: str = "red", seed: int = 0) -> bytes:
        noise = np.random.default_rng(seed).integers(-25, 25, (40, 48, 3))
        pixels = np.clip(np.array(COLOURS[label]) + noise, 0, 255).astype(np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        return file.getvalue()

    return paint


@pytest.fixture(scope="session")
def decoded(picture: Callable[..., bytes], backbone: Backbone) -> Callable[..., Picture]:
    """``decoded("red", 3)``: the same, as the decoder hands it over."""

    def decode(label: str = "red", seed: int = 0) -> Picture:
        encoded = picture(label, seed)
        small = np.asarray(Image.open(io.BytesIO(encoded)))
        return Picture(backbone.G.preprocess(encoded), small, encoded)

    return decode


@pytest.fixture
def session(tmp_path: Path, backbone: Backbone) -> Iterator[Session]:
    made = Session(verse.open(tmp_path / "taught", backbone=backbone), limit=8)
    yield made
    made.close()


@pytest.fixture
def serve(session: Session) -> Iterator[Callable[..., TestClient]]:
    """``serve(token=…, private=…, rate=…)``: a client of the running application."""
    running: list[TestClient] = []

    def start(
        token: str | None = None,
        private: bool = False,
        rate: float = 0.0,
        body: int = 2**20,
        hosts: frozenset[str] = LOOPBACK,
        **limits: float,
    ) -> TestClient:
        access = Access(token.encode() if token else None, private, hosts)
        allowed = Limits(body=body, rate=rate, **limits)
        app = create_app(session, access=access, limits=allowed, decoders=1, decode_seconds=30.0)
        client = TestClient(app, base_url="http://127.0.0.1:8700", raise_server_exceptions=False)
        client.__enter__()
        running.append(client)
        return client

    yield start
    for client in running:
        client.__exit__()


@pytest.fixture
def launch() -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """``launch(directory, "--option", …)``: the real server, in a process of its own."""
    running: list[subprocess.Popen[str]] = []

    def start(directory: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "verse.cli",
                "serve",
                str(directory),
                "--port",
                "0",
                "--threads",
                "1",
                "--rate",
                "0",
                "--at",
                "fc",
                *options,
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
        )
        running.append(server)
        assert server.stderr is not None
        lines = []
        for line in server.stderr:
            lines.append(line)
            if line.startswith("Serving on http"):
                break
        assert lines[-1].startswith("Serving on http"), "".join(lines)
        return server, line.split()[-1]

    yield start
    for server in running:
        server.kill()
        server.wait()
        assert server.stderr is not None
        server.stderr.close()
