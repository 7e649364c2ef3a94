"""Why a session did nothing."""

from __future__ import annotations

from verse.types import VerseError


class Busy(VerseError):
    """The queue is full: nothing was done, come again in ``seconds``."""

    def __init__(self, what: str, seconds: int) -> None:
        super().__init__(f"too many {what} requests are waiting: try again in {seconds} s")
        self.seconds = seconds


class Closing(VerseError):
    """The service shuts down: nothing was done."""

    def __init__(self) -> None:
        super().__init__("the service is shutting down: send the request again when it is back")


class NotFound(VerseError):
    """There is no such class, sample or frame."""
