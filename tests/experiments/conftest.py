"""The world of points, importable by name as a user's own data set would be."""

from __future__ import annotations

from typing import Any

import pytest

from verse.experiments import Run


@pytest.fixture(autouse=True)
def _toy(points: None) -> None:
    """Everywhere in this folder."""


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
