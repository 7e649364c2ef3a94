"""A method is one short file that can be read in one go."""

from __future__ import annotations

import inspect
import statistics
from pathlib import Path

import pytest

from verse import learners
from verse.types import BadSetting


def test_learners_are_short_files() -> None:
    classes = {
        factory for name in learners.names() if isinstance(factory := learners.get(name), type)
    }
    lines = {c: len(Path(inspect.getfile(c)).read_text("utf-8").splitlines()) for c in classes}
    assert len({inspect.getfile(c) for c in classes}) == len(classes), "one method per file"
    assert statistics.median(lines.values()) <= 100
    assert max(lines.values()) <= 250


def test_what_was_removed_is_still_read_but_not_built() -> None:
    assert learners.defaults("slda-quarters") == {"shrinkage": 0.1, "temperature": 0.3}
    assert learners.bind("slda-quarters", {"shrinkage": 0.2}) == {"shrinkage": 0.2}
    assert "slda-quarters" not in learners.names()
    with pytest.raises(BadSetting, match="was removed: take slda with features=grid"):
        learners.get("slda-quarters")
