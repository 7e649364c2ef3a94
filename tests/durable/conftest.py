from __future__ import annotations

import pytest

from verse.durable import timing, write_ahead


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints every few samples, so that every case comes up soon."""
    monkeypatch.setattr(write_ahead, "UNDO_WINDOW", 10)
    monkeypatch.setattr(timing, "CHECKPOINT_EVERY", 7)
    monkeypatch.setattr(timing, "LONGEST_JOURNAL", 40)
