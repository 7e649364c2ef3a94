"""Send what nobody should send: no 5xx, no crash, no state change.

    python benchmarks/fuzz.py [--requests 10000] [--examples 100]

First schemathesis explores the OpenAPI document; then malformed images and bodies are sent. A
damaged image may still be a picture: those go to /v1/predict, or to /v1/learn with a label that
is refused, so that nothing may be learned.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import numpy as np
from PIL import Image

BAD_LABELS = ["", " ", "../x", "a/b", "a\\b", "\0", "x" * 5000, "\u202e", "..", "\x1b[31m"]


def seeds(picture: bytes) -> list[bytes]:
    """The picture in several formats."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    made = [picture]
    for kind in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM"):
        file = io.BytesIO()
        image.save(file, kind)
        made.append(file.getvalue())
    return made


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut, flip, overwrite, repeat, splice or replace bytes."""
    data = bytearray(content)
    kind = int(rng.integers(7))
    at = int(rng.integers(max(1, len(data))))
    if kind == 0:
        return bytes(data[:at])
    if kind == 1:
        for _ in range(int(rng.integers(1, 40))):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        data[at : at + 64] = rng.bytes(64)
    elif kind == 3:
        data[at:at] = data[: int(rng.integers(1, 4096))]
    elif kind == 4:  # lengths and sizes in the header
        head = int(rng.integers(4, 64))
        data[head : head + 4] = bytes([255, 255, 255, int(rng.integers(256))])
    elif kind == 5:  # a picture's beginning on something else
        return bytes(data[: int(rng.integers(2, 64))]) + rng.bytes(int(rng.integers(2000)))
    else:
        return rng.bytes(int(rng.integers(0, 3000)))
    return bytes(data)


def polyglot(picture: bytes, rng: np.random.Generator) -> bytes:
    """An image that is something else, too."""
    tails = [b"<script>alert(1)</script>", b"PK\x05\x06" + b"\0" * 18, b"%PDF-1.4", b"#!/bin/sh\n"]
    return picture + tails[int(rng.integers(len(tails)))]


def bomb() -> bytes:
    """A small file of very many pixels."""
    file = io.BytesIO()
    Image.new("1", (20000, 20000)).save(file, "PNG")
    return file.getvalue()


def attack(client: Any, picture: bytes, *, requests: int, seed: int) -> Counter[int]:
    """Send malformed requests; how often each status came."""
    rng = np.random.default_rng(seed)
    pictures, big = seeds(picture), bomb()
    codes: Counter[int] = Counter()
    text = {"Content-Type": "application/json"}
    for _ in range(requests):
        image = mutate(pictures[int(rng.integers(len(pictures)))], rng)
        bad = BAD_LABELS[int(rng.integers(len(BAD_LABELS)))]
        kind = int(rng.integers(12))
        if kind < 5:
            answer = client.post("/v1/predict", files={"image": image})
        elif kind == 5:
            answer = client.post("/v1/learn", files={"image": image}, data={"label": bad})
        elif kind == 6:
            answer = client.post(
                "/v1/learn", files={"image": rng.bytes(200)}, data={"label": "fine"}
            )
        elif kind == 7:
            shape = {"Content-Type": "multipart/form-data; boundary=x"}
            body = mutate(
                b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"'
                b"\r\n\r\nabc\r\n--x--\r\n",
                rng,
            )
            answer = client.post("/v1/learn", content=body, headers=shape)
        elif kind == 8:
            body = mutate(json.dumps({"to": "x" * 50, "n": [1, {"a": None}]}).encode(), rng)
            answer = client.post("/v1/classes/none/rename", content=body, headers=text)
        elif kind == 9:
            depth = int(rng.integers(1, 30000))
            answer = client.post("/v1/classes/none/merge", content=b"[" * depth, headers=text)
        elif kind == 10:
            path = quote(
                rng.bytes(int(rng.integers(1, 150))), safe="/%" if rng.random() < 0.5 else ""
            )
            method = ["GET", "DELETE", "PATCH", "POST"][int(rng.integers(4))]
            answer = client.request(method, f"/v1/classes/{path}")
        else:
            sent = big if rng.random() < 0.05 else polyglot(image, rng)
            answer = client.post("/v1/predict", files={"image": ("../../x.sh", sent)})
        codes[answer.status_code] += 1
        if answer.status_code >= 500:
            raise AssertionError(f"{answer.request.url}: {answer.status_code} {answer.text}")
    return codes


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The address of the application on a port of its own."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def explore(app: Any, *, examples: int) -> int:
    """Let schemathesis call every documented route; how many calls it made."""
    import hypothesis
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    # no schema can say that bytes are an image
    unfit = [positive_data_acceptance]
    calls = 0
    with warnings.catch_warnings(), served(app) as url:
        warnings.simplefilter("ignore")
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.path == "/v1/events":
                continue  # it never ends
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                if mode.is_negative and not operation.iter_parameters() and not operation.body:
                    continue  # nothing to get wrong

                @hypothesis.settings(
                    max_examples=examples,
                    deadline=None,
                    database=None,
                    derandomize=True,
                    suppress_health_check=list(hypothesis.HealthCheck),
                )
                @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
                def call(case: Any) -> None:
                    nonlocal calls
                    calls += 1
                    case.call_and_validate(excluded_checks=unfit)

                with suppress(hypothesis.errors.Unsatisfiable):
                    call()
    return calls


def main() -> None:
    import torch
    from starlette.testclient import TestClient

    import verse
    from verse.serve.app import create_app
    from verse.serve.limits import Limits
    from verse.serve.server import silence_senders
    from verse.serve.session import Session

    silence_senders()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    file = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (48, 64, 3)).astype(np.uint8)
    Image.fromarray(noise).save(file, "PNG")

    def session() -> Session:
        return Session(verse.open(tempfile.mkdtemp(), threads=1))

    start = time.monotonic()
    calls = explore(create_app(session(), limits=Limits(rate=0)), examples=options.examples)
    print(f"schemathesis: {calls} calls in {time.monotonic() - start:.0f} s, no failure")
    taught = session()
    app = create_app(taught, limits=Limits(rate=0))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=True) as client:
        for label in ("a", "b"):
            client.post("/v1/learn", files={"image": file.getvalue()}, data={"label": label})
        learner, last = taught.classifier.learner, taught.classifier.journal.last
        before = {k: v.clone() for k, v in learner.state().items()}
        start = time.monotonic()
        codes = attack(client, file.getvalue(), requests=options.requests, seed=options.seed)
        assert all(torch.equal(before[k], v) for k, v in learner.state().items())
        assert taught.classifier.journal.last == last
    took = time.monotonic() - start
    print(f"malformed: {sum(codes.values())} requests in {took:.0f} s, state unchanged")
    print("  " + ", ".join(f"{code}: {n}" for code, n in sorted(codes.items())))


if __name__ == "__main__":
    main()
