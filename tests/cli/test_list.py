"""``verse list``."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from verse.cli import main
from verse.cli.list import KINDS, LEGEND, summarize_traits
from verse.configuration import Configuration
from verse.learners.traits import Traits

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


def test_alone_it_lists_every_kind() -> None:
    result = CliRunner().invoke(main, ["list"], catch_exceptions=False)
    assert result.exit_code == 0
    for kind, name in SOME.items():
        assert f"{kind.upper()}\n" in result.stdout and f"\n{name} " in result.stdout
    found = json.loads(CliRunner().invoke(main, ["list", "--json"]).stdout)
    assert set(found) == set(KINDS)


def test_the_default_is_marked_and_is_the_one_that_is_taken() -> None:
    taken = Configuration()
    kinds = {"learners": taken.learner, "backbones": taken.backbone, "memories": taken.memory}
    for kind, name in kinds.items():
        rows = json.loads(CliRunner().invoke(main, ["list", kind, "--json"]).stdout)
        assert [row["name"] for row in rows if row["default"]] == [name]
        assert f"{name} (default)" in CliRunner().invoke(main, ["list", kind]).stdout


def test_every_column_of_the_assumptions_is_explained() -> None:
    result = CliRunner().invoke(main, ["list", "learners"], env={"COLUMNS": "200"})
    explained = {word for column in LEGEND for word in column.split(", ")}
    row = {"name": "x", "type": "", **dict.fromkeys(Traits("online").as_dict())}
    assert set(summarize_traits(row)) - {"name"} | {"fidelity"} == explained
    assert all(column in result.stdout for column in LEGEND)


def test_an_unknown_kind_names_the_valid_ones() -> None:
    result = CliRunner().invoke(main, ["list", "lerners"])
    assert result.exit_code == 2
    assert "learners" in result.stderr
    assert result.stdout == ""


def test_learners_come_with_what_they_assume() -> None:
    result = CliRunner().invoke(main, ["list", "learners", "--json"], catch_exceptions=False)
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    columns = {
        "name",
        "description",
        "default",
        "fidelity",
        "adaptation",
        "type",
        "batch_size",
        "fine_tuning",
        "single_pass",
        "class_incremental",
        "subset_replay",
        "training_time",
        "inference_time",
        "buffer",
        "violates_cisll",
        "settings",
    }
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
        flags = [
            row["batch_size"] != "1",
            *(
                row[key]
                for key in (
                    "fine_tuning",
                    "single_pass",
                    "class_incremental",
                    "subset_replay",
                    "violates_cisll",
                )
            ),
        ]
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
