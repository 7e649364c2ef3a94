"""Which files of the package something runs through."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

import verse

PACKAGE = Path(verse.__file__).parent


class Walk:
    """Notes the file of every function called, in this thread and in those that start later."""

    def __init__(self) -> None:
        self.seen: set[str] | None = None

    def __enter__(self) -> Self:
        self.before = sys.gettrace()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)
        threading.settrace(self.before)  # type: ignore[arg-type]

    def _trace(self, frame: FrameType, event: str, argument: Any) -> None:
        seen, code = self.seen, frame.f_code
        if seen is not None and code.co_name != "<module>":  # an import is no step
            seen.add(code.co_filename)

    def files_of(self, work: Callable[[], object]) -> set[str]:
        """Paths below verse/ that this work runs through."""
        self.seen = seen = set()
        try:
            work()
        finally:
            self.seen = None
        inside = (Path(name) for name in seen.copy() if name.startswith(f"{PACKAGE}/"))
        return {path.relative_to(PACKAGE).as_posix() for path in inside}
