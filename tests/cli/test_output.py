"""Printing: JSON that any reader accepts, and nothing beside it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from verse.cli.output import plain, print_json, print_table, result_only


@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    names: tuple[str, ...]


def test_plain_knows_what_commands_return() -> None:
    value = {
        1: np.float32(0.5),
        "n": np.int64(3),
        "bad": float("inf"),
        "point": Point(1.0, ("a", "b")),
        "path": Path("x/y"),
        "set": {2, 1},
        "none": None,
        "yes": True,
    }
    assert plain(value) == {
        "1": 0.5,
        "n": 3,
        "bad": None,
        "point": {"x": 1.0, "names": ["a", "b"]},
        "path": "x/y",
        "set": [1, 2],
        "none": None,
        "yes": True,
    }


def test_plain_refuses_what_has_no_json_form() -> None:
    with pytest.raises(TypeError, match="ndarray has no JSON form"):
        plain({"array": np.zeros(3)})


def test_json_stands_alone_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with result_only(as_json=True):
        print("a library talks")
    print_json([{"α": 1.0}])
    out, err = capsys.readouterr()
    assert json.loads(out) == [{"α": 1.0}]
    assert err == "a library talks\n"


def test_a_table_lines_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"name": "verse", "steps": 3}, {"name": "ncm", "steps": 10}])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["name", "steps"], ["verse", "3"], ["ncm", "10"]]


def test_an_empty_table_prints_nothing_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([])
    assert capsys.readouterr().out.strip() == ""
