"""Forged checkpoints and backups (the long version: benchmarks/hostile_files.py)."""

from __future__ import annotations

from benchmarks.hostile_files import attack


def test_forged_files_open_or_are_refused_by_a_sentence(tmp_path) -> None:
    counts = attack(60, 1, tmp_path)
    assert counts["checkpoint: BadState"] > 5 and counts["backup: BadState"] > 5
    assert counts["checkpoint: opened"] + counts["backup: opened"] > 5
