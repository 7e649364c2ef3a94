"""Ctrl-C while modules load: it waits for the end of the import, and is never lost there.

A KeyboardInterrupt inside an import can go wrong in two ways. Some modules, compiled ones above
all, take any error of what they import as "not there" and go on: the key press is lost. And if it
passes through ``exec`` of a text, with which dataclasses make their methods, ``python -m`` ends by
the signal and not with the exit code, although the error was handled.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from verse.garbage import pause_garbage_collection

LOOK_AGAIN = 0.02  # seconds
IMPORTS = "<frozen importlib._bootstrap>"
TEXT = ("<string>", "<module>")
_nothing_begun = False  # of the main thread, the only one that changes it


@contextmanager
def late_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt for Ctrl-C, but not before an import under way has ended.

    A second Ctrl-C during an import ends the process at once, with exit code 130: what a durable
    classifier has acknowledged is on the disk. Where something else handles Ctrl-C, or it is
    ignored (a shell's background jobs), nothing is changed.

    >>> with late_interrupts():
    ...     signal.getsignal(signal.SIGINT) is signal.default_int_handler
    False
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        or not hasattr(signal, "setitimer")
    ):
        yield
        return
    waiting = False

    def interrupt(_: int, frame: FrameType | None) -> None:
        nonlocal waiting
        if not loses_errors(frame):
            raise KeyboardInterrupt
        if waiting or _nothing_begun:
            os.write(2, b"Interrupted. Everything so far is saved.\n")
            os._exit(130)
        waiting = True
        signal.setitimer(signal.ITIMER_REAL, LOOK_AGAIN, LOOK_AGAIN)

    def look(_: int, frame: FrameType | None) -> None:
        nonlocal waiting
        if loses_errors(frame):
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        waiting = False
        raise KeyboardInterrupt

    alarm = signal.signal(signal.SIGALRM, look)
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, alarm)


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """While only imports happen, Ctrl-C ends the process at once.

    Importing torch takes seconds, on a busy machine many. Nothing can be lost yet.
    """
    global _nothing_begun
    before, _nothing_begun = _nothing_begun, True
    try:
        with pause_garbage_collection(freeze=True):
            yield
    finally:
        _nothing_begun = before


def loses_errors(frame: FrameType | None) -> bool:
    """Whether an error may be lost here: in an import, a ``__del__``, or a text that is run."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename == IMPORTS or code.co_name == "__del__":
            return True
        if (code.co_filename, code.co_name) == TEXT and frame.f_back is not None:  # not python -c
            return True
        frame = frame.f_back
    return False
