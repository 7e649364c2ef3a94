"""Ctrl-C waits until a sample is learned or refused, so that it is never half learned."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Hold SIGINT back inside the block and deliver it at the end.

    Python delivers signals to the main thread only; elsewhere there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        pending.append(number)

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        # None: a handler that was not installed from Python cannot be put back by it
        signal.signal(signal.SIGINT, signal.SIG_DFL if previous is None else previous)
        if pending:
            signal.raise_signal(signal.SIGINT)
