"""A method is one short file that can be read in one go."""

from __future__ import annotations

import inspect
import statistics
from pathlib import Path

from verse import learners


def test_learners_are_short_files() -> None:
    classes = {
        factory for name in learners.names() if isinstance(factory := learners.get(name), type)
    }
    lines = {c: len(Path(inspect.getfile(c)).read_text("utf-8").splitlines()) for c in classes}
    assert len({inspect.getfile(c) for c in classes}) == len(classes), "one method per file"
    assert statistics.median(lines.values()) <= 100
    assert max(lines.values()) <= 250
