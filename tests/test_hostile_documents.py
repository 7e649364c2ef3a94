"""Forged results, recipes, teachable and ONNX files (the long version: benchmarks)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.hostile_documents import KINDS, attack


@pytest.mark.parametrize("kind", KINDS)
def test_forged_documents_open_or_are_refused_by_a_sentence(tmp_path: Path, kind: str) -> None:
    counts = attack(40, 1, tmp_path, (kind,))
    opened = counts[f"{kind}: opened"]
    refused = sum(n for name, n in counts.items() if name.startswith(f"{kind}: ")) - opened
    assert opened + refused == 40
    assert opened >= 2 and refused >= 10
