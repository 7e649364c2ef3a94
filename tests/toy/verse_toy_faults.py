"""Learners that go wrong: one that fails, one whose process dies once, one that always does."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import ClassVar

from verse.learners import TinyER


class Failing(TinyER):
    """Raises in the middle of the stream."""

    name: ClassVar[str] = "failing"

    def step(self, z, y):  # type: ignore[no-untyped-def]
        if len(self.memory) == 10:
            raise RuntimeError("the tenth sample was too much")
        super().step(z, y)


class DiesOnce(TinyER):
    """Ends its process by signal 9, but only where no file says that it did so before."""

    name: ClassVar[str] = "dies-once"

    def step(self, z, y):  # type: ignore[no-untyped-def]
        mark = Path(os.environ["VERSE_TOY_MARK"])
        if len(self.memory) == 10 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        super().step(z, y)


class Dying(TinyER):
    """Ends its process by signal 9 every time."""

    name: ClassVar[str] = "dying"

    def step(self, z, y):  # type: ignore[no-untyped-def]
        os.kill(os.getpid(), signal.SIGKILL)
