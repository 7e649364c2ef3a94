"""Where events go: standard output or a file as JSON lines, and a webhook."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from verse.types import BadSetting
from verse.watch.events import SceneEvent

QUEUE = 1000  # events that wait for a receiver; beyond it the oldest are dropped
LONGEST_PAUSE = 30.0


class Sink:
    """Takes events. ``send`` never waits for a network."""

    def send(self, event: SceneEvent) -> None:
        """Deliver an event, or queue it."""
        raise NotImplementedError

    def close(self) -> None:
        """Deliver what can be delivered soon, then close."""


class JSONLines(Sink):
    """One JSON document a line, flushed at once.

    Parameters
    ----------
    file
        An open text file, or the path of one to append to.

    >>> import io
    >>> file = io.StringIO()
    >>> event = SceneEvent("gone", None, "cup", 0.9, 3.5, "door", "2026-01-01T12:00:00Z")
    >>> JSONLines(file).send(event)
    >>> json.loads(file.getvalue())["previous"]
    'cup'
    """

    def __init__(self, file: TextIO | Path) -> None:
        self._own = isinstance(file, Path)
        self._file: TextIO = file.open("a", encoding="utf-8") if isinstance(file, Path) else file

    def send(self, event: SceneEvent) -> None:
        self._file.write(json.dumps(event.document(), ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._own:
            self._file.close()


class Webhook(Sink):
    """Posts each event as JSON, in order, in a separate thread; repeats until it is accepted.

    Parameters
    ----------
    url
        ``http://`` or ``https://``.
    timeout
        Seconds that the receiver may take.
    tell
        Gets a sentence when the receiver goes away, comes back, or events had to be dropped.

    >>> Webhook("http://127.0.0.1:8123/event").close()
    """

    def __init__(
        self, url: str, *, timeout: float = 5.0, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise BadSetting(f"a webhook is an http:// or https:// address, not {url!r}")
        self.url, self.timeout, self._tell = url, timeout, tell
        self._waiting: deque[SceneEvent] = deque()
        self._changed = threading.Condition()
        self._deadline: float | None = None
        self._failing = False
        self._worker = threading.Thread(target=self._deliver, name="webhook", daemon=True)
        self._worker.start()

    def send(self, event: SceneEvent) -> None:
        with self._changed:
            self._waiting.append(event)
            if len(self._waiting) > QUEUE:
                lost = self._waiting.popleft()
                self._tell(f"{self.url} takes no events: the oldest is dropped ({lost.kind})")
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._deadline = time.monotonic() + self.timeout
            self._changed.notify()
        self._worker.join(2 * self.timeout)
        if self._waiting:
            self._tell(f"{len(self._waiting)} events could not be delivered to {self.url}")

    def _deliver(self) -> None:
        pause = 0.2
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._deadline is not None)
                if not self._waiting:
                    return
                event = self._waiting[0]
            try:
                self._post(event)
            except (OSError, urllib.error.URLError) as error:
                if not self._failing:
                    self._failing = True
                    self._tell(f"{self.url} does not take events ({error}); trying again")
                with self._changed:
                    if self._deadline is not None and time.monotonic() > self._deadline:
                        return
                    self._changed.wait_for(lambda: self._deadline is not None, pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            pause = 0.2
            if self._failing:
                self._failing = False
                self._tell(f"{self.url} takes events again")
            with self._changed:
                if self._waiting and self._waiting[0] is event:
                    self._waiting.popleft()

    def _post(self, event: SceneEvent) -> None:
        body = json.dumps(event.document()).encode()
        request = urllib.request.Request(
            self.url, body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=self.timeout) as response:
            response.read(1024)
