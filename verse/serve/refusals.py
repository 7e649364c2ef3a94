"""Why a session did nothing."""

from __future__ import annotations

from verse.types import BadLabel, VerseError


class Busy(VerseError):
    """The queue is full: nothing was done, come again in ``seconds``."""

    def __init__(self, what: str, seconds: int) -> None:
        super().__init__(f"too many {what} requests wait already: try again in {seconds} s")
        self.seconds = seconds


class Closing(VerseError):
    """The service shuts down: nothing was done."""

    def __init__(self) -> None:
        super().__init__("the service shuts down; send it again when it is back")


class Unknown(BadLabel):
    """There is no such class."""
