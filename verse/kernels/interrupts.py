"""Ctrl-C waits until a sample is learned or refused, so that it is never half learned."""

from __future__ import annotations

import _signal  # without the conversions to enums, which take longer than the call itself
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_deferring = False  # of the main thread, the only one that changes it


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Hold SIGINT back inside the block and deliver it at the end.

    Python delivers signals to the main thread only; elsewhere there is nothing to hold back, nor
    inside another such block, which delivers it.
    """
    global _deferring
    if _deferring or threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        pending.append(number)

    previous = _signal.signal(_signal.SIGINT, remember)
    try:
        _deferring = True
        yield
    finally:
        _deferring = False
        # None: a handler that was not installed from Python cannot be put back by it
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL if previous is None else previous)
        if pending:
            signal.raise_signal(signal.SIGINT)
