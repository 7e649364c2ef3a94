"""The report in the repository is the one that its results give, and small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verse.experiments.store import Store
from verse.reports.page import digest


@pytest.fixture
def published(root: Path) -> Path:
    folder = root / "docs" / "results"
    if not (folder / "report.json").exists():
        pytest.skip("no report yet: verse report results")
    return folder


def test_the_report_is_of_these_results(published: Path, root: Path) -> None:
    folders = [root / "results", root / "results" / "tuning"]
    ids = [identity for folder in folders for identity in Store(folder).ids()]
    facts = json.loads((published / "report.json").read_text(encoding="utf-8"))
    assert facts["digest"] == digest(ids), "run: verse report results"


def test_the_report_is_small_and_whole(published: Path) -> None:
    files = [path for path in published.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 5_000_000
    facts = json.loads((published / "report.json").read_text(encoding="utf-8"))
    named = {published / name for name in facts["files"]}
    named |= {published / name for name in ("index.html", "index.md", "report.json")}
    assert named == set(files)
