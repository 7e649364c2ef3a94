"""``verse list``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from verse.cli import main
from verse.cli.list import KINDS

SOME = {
    "learners": "verse",
    "datasets": "folder",
    "backbones": "efficientnet-lite0",
    "memories": "class-balanced",
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_an_array_of_names_and_descriptions(kind: str) -> None:
    result = CliRunner().invoke(main, ["list", kind, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert SOME[kind] in [row["name"] for row in rows]
    assert all(row["description"] for row in rows)


def test_people_get_a_table() -> None:
    result = CliRunner().invoke(main, ["list", "memories"], catch_exceptions=False)
    assert result.stdout.splitlines()[0].split() == ["name", "description"]
    assert "class-balanced" in result.stdout


def test_an_unknown_kind_names_the_valid_ones() -> None:
    result = CliRunner().invoke(main, ["list", "lerners"])
    assert result.exit_code == 2
    assert "learners" in result.stderr
    assert result.stdout == ""
