"""A client whose retries are safe: what is sent twice is learned once."""

from __future__ import annotations

import io
import json
import os
import random
import ssl
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx2 as httpx

from verse.images import rgb
from verse.types import VerseError

LONGEST_WAIT = 10.0
AGAIN = frozenset({408, 429, 502, 503, 504})  # nothing was done: it may be sent again


class ServiceError(VerseError):
    """The service refused, or could not be reached. ``code`` is its HTTP status, or None."""

    def __init__(self, message: str, code: int | None) -> None:
        super().__init__(message)
        self.code = code


class Client:
    """Talk to ``verse serve``. Images are paths, encoded bytes, arrays, tensors or PIL images.

    A request that fails on the way, or that the service is too busy for, is sent again up to
    ``retries`` times, with growing pauses. Every lesson carries an idempotency key, so that a
    lesson whose answer was lost is not learned a second time; undo, forget, rename and merge are
    not sent again once they may have been received. ``verify`` may name a file of certificates to
    trust, for a server whose own no authority has signed.

    >>> client = Client("http://127.0.0.1:8700")
    >>> client.close()
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8700",
        *,
        token: str | None = None,
        retries: int = 8,
        timeout: float = 30.0,
        verify: bool | str = True,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.retries = retries
        trusted = ssl.create_default_context(cafile=verify) if isinstance(verify, str) else verify
        self.http = httpx.Client(
            base_url=url, headers=headers, timeout=timeout, verify=trusted, transport=transport
        )

    def learn(self, image: object, label: str, *, key: str | None = None) -> dict[str, Any]:
        """Teach one image. When this returns, it is learned and saved."""
        answer: dict[str, Any] = self._send(
            "POST",
            "/v1/learn",
            headers={"Idempotency-Key": key or str(uuid.uuid4())},
            files={"image": ("image", _encode(image))},
            data={"label": label},
        )
        return answer

    def learn_frame(self, frame: str, label: str, *, key: str | None = None) -> dict[str, Any]:
        """Teach an image that was asked about within a minute, by the id that ``predict`` gave."""
        answer: dict[str, Any] = self._send(
            "POST",
            "/v1/learn",
            headers={"Idempotency-Key": key or str(uuid.uuid4())},
            data={"label": label, "frame": frame},
        )
        return answer

    def predict(self, image: object) -> dict[str, Any]:
        """What an image shows: label, confidence, probabilities, step, and the frame's id."""
        files = {"image": ("image", _encode(image))}
        answer: dict[str, Any] = self._send("POST", "/v1/predict", files=files)
        return answer

    def classes(self) -> list[dict[str, Any]]:
        """What it knows: label, samples taught, samples in memory of each class."""
        answer: list[dict[str, Any]] = self._send("GET", "/v1/classes")
        return answer

    def status(self) -> dict[str, Any]:
        """Samples, classes, memory, queue, rates."""
        answer: dict[str, Any] = self._send("GET", "/v1/status")
        return answer

    def undo(self, seq: int) -> dict[str, Any]:
        """Undo one of the latest samples."""
        answer: dict[str, Any] = self._send("DELETE", f"/v1/samples/{seq}", once=True)
        return answer

    def undo_many(self, seqs: Iterable[int]) -> dict[str, Any]:
        """Undo several of the latest samples, all or none."""
        body = {"seqs": list(seqs)}
        answer: dict[str, Any] = self._send("POST", "/v1/undo", once=True, json=body)
        return answer

    def undo_last(self, count: int) -> dict[str, Any]:
        """Undo the latest samples."""
        body = {"count": count}
        answer: dict[str, Any] = self._send("POST", "/v1/undo", once=True, json=body)
        return answer

    def forget(self, label: str) -> dict[str, Any]:
        """Forget a class permanently."""
        answer: dict[str, Any] = self._send("DELETE", _class(label), once=True)
        return answer

    def rename(self, label: str, to: str) -> dict[str, Any]:
        """Give a class another label."""
        path = f"{_class(label)}/rename"
        answer: dict[str, Any] = self._send("POST", path, once=True, json={"to": to})
        return answer

    def merge(self, label: str, into: str) -> dict[str, Any]:
        """Merge a class into another one."""
        path = f"{_class(label)}/merge"
        answer: dict[str, Any] = self._send("POST", path, once=True, json={"into": into})
        return answer

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(type, data) of every change, until the service ends or the iterator is closed."""
        try:
            with self.http.stream("GET", "/v1/events", timeout=60.0) as response:
                if not response.is_success:
                    response.read()
                    raise ServiceError(_detail(response), response.status_code)
                kind = "message"
                for line in response.iter_lines():
                    name, _, value = line.partition(": ")
                    if name == "event":
                        kind = value
                    elif name == "data":
                        yield kind, json.loads(value)
        except httpx.TransportError as error:
            raise ServiceError(f"the service can no longer be heard: {error}", None) from error

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, method: str, path: str, *, once: bool = False, **content: Any) -> Any:
        """Send, and again if that is safe; ``once``: only while it cannot have been received."""
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            wait = min(LONGEST_WAIT, 0.1 * 2**attempt) * random.uniform(0.5, 1)
            try:
                response = self.http.request(method, path, **content)
            except httpx.ConnectError as error:
                if last:
                    raise ServiceError(f"cannot reach the service: {error}", None) from error
            except httpx.TransportError as error:
                if last or once:
                    raise ServiceError(f"the service did not answer: {error}", None) from error
            else:
                if response.status_code in AGAIN and not last:
                    wait = max(wait, _seconds(response.headers.get("Retry-After")))
                elif response.is_success:
                    return response.json()
                else:
                    raise ServiceError(_detail(response), response.status_code)
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")


def _encode(image: object) -> bytes:
    if isinstance(image, bytes | bytearray | memoryview):
        return bytes(image)
    if isinstance(image, str | os.PathLike):
        return Path(image).read_bytes()
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(rgb(image)).save(file, "PNG")
    return file.getvalue()


def _class(label: str) -> str:
    return f"/v1/classes/{quote(label, safe='')}"


def _seconds(text: str | None) -> float:
    return min(LONGEST_WAIT, float(text)) if text is not None and text.isdecimal() else 0.0


def _detail(response: httpx.Response) -> str:
    try:
        return str(response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {response.status_code}"
