"""``verse info``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from verse import __version__
from verse.cli import main


def test_json_is_one_document_on_standard_output() -> None:
    result = CliRunner().invoke(main, ["info", "--json"])
    assert result.exit_code == 0
    facts = json.loads(result.stdout)
    assert facts["verse"] == __version__
    assert facts["packages"]["torch"].startswith("2.")
    assert facts["device"]["cores"] >= 1
    assert "CPUExecutionProvider" in facts["engines"]["onnxruntime"]
    assert set(facts["extras"]) >= {"serve", "report", "ray"}


def test_people_get_one_line_for_each_fact() -> None:
    result = CliRunner().invoke(main, ["info"])
    assert result.exit_code == 0
    assert f"{__version__}" in result.stdout
    assert "packages torch" in result.stdout


def test_caches_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "a").write_bytes(b"12345")
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path))
    result = CliRunner().invoke(main, ["info", "--json"])
    assert json.loads(result.stdout)["caches"] == {
        "directory": str(tmp_path),
        "features bytes": 5,
    }
