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


def test_learners_come_with_what_they_assume() -> None:
    result = CliRunner().invoke(main, ["list", "learners", "--json"], catch_exceptions=False)
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    columns = {
        "name", "description", "fidelity", "adaptation", "type", "batch_size", "fine_tuning",
        "single_pass", "class_incremental", "subset_replay", "training_time", "inference_time",
        "buffer", "violates_cisll", "settings",
    }  # fmt: skip
    assert all(set(row) == columns for row in rows.values())
    assert all(row["fidelity"] in ("faithful", "adapted") for row in rows.values())
    assert all(bool(row["adaptation"]) == (row["fidelity"] == "adapted") for row in rows.values())


def test_assumptions_are_those_of_the_papers_table() -> None:
    """Row by row: type, batch of many, fine-tuning, single pass, CIL, subset, breaks CISLL."""
    result = CliRunner().invoke(main, ["list", "learners", "--json"], catch_exceptions=False)
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    table = {
        "lwf": "batch y n n n - y",
        "ewcpp": "batch y n n n - y",
        "mas": "batch y n n n - y",
        "si": "batch y n n n - y",
        "vcl": "batch y n n n - y",
        "coreset-vcl": "batch y y n n n y",
        "gem": "online y n y n y y",
        "agem": "online y n y n y y",
        "gdumb": "online y y n y n y",
        "tinyer": "online y n y y y n",
        "der": "online y n y y y n",
        "derpp": "online y n y y y n",
        "exstream": "streaming n n y y n y",
        "remind": "streaming n n y y y n",
        "cls-er": "batch y n n y y y",
        "verse": "streaming n n y y y n",
    }
    signs = {True: "y", False: "n", None: "-"}
    for name, expected in table.items():
        row = rows[name]
        flags = [row["batch_size"] != "1", *(row[key] for key in (
            "fine_tuning", "single_pass", "class_incremental", "subset_replay", "violates_cisll",
        ))]  # fmt: skip
        assert " ".join([row["type"], *(signs[flag] for flag in flags)]) == expected, name


def test_people_see_the_table_of_assumptions() -> None:
    """Also on a narrow terminal: no name and no word in two."""
    for columns in ("80", "200"):
        result = CliRunner().invoke(
            main, ["list", "learners"], catch_exceptions=False, env={"COLUMNS": columns}
        )
        lines, table = result.stdout.partition("\n\n")[::2]
        assert all(f"\n{name} " in lines for name in ("verse-no-virtual", "fine-tune"))
        rows = {line.split()[0]: line.split() for line in table.splitlines() if line.strip()}
        assert rows["verse"][1:3] == ["streaming", "1"] and rows["coreset-vcl"][1] == "batch"
        assert max(map(len, result.stdout.splitlines())) <= int(columns)
        assert lines.split()[:3] == ["name", "fidelity", "description"]
