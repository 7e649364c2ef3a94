"""The world of points, importable by name as a user's own data set would be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from verse.experiments import Run


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path) -> None:
    monkeypatch.syspath_prepend(root / "tests" / "toy")
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("verse.experiments.reference.STEPS", 50)  # points are learned at once


def toy(**changes: Any) -> Run:
    """A run over points that takes milliseconds."""
    plain: dict[str, Any] = {
        "dataset": "verse_toy.load",
        "learner": "verse",
        "backbone": "verse_toy.flat",
        "capacity": "20",
        "offline": False,
    }
    return Run(**plain | changes)


@pytest.fixture(name="toy")
def _run() -> Any:
    return toy
