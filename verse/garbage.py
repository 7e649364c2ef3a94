"""Loading without the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_garbage_collection(*, freeze: bool = False) -> Iterator[None]:
    """While modules, models or results load, nothing is garbage.

    Looking for it takes a quarter of the time in which torch is imported, and a third of that in
    which thousands of results are read. With ``freeze`` what has been loaded is never looked
    through again: for a process that keeps it until its end.

    >>> with pause_garbage_collection():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if freeze:
            gc.freeze()
        gc.enable()
