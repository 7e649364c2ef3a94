"""Stores of the first version: every number of four real runs comes over."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner

from verse.cli import main
from verse.experiments.convert import convert_stores
from verse.experiments.jsonl import Damaged
from verse.experiments.result import Result
from verse.experiments.store import Store
from verse.types import BadState

OLD = Path(__file__).parent / "old"


def equal(new: Result, old: dict) -> None:  # type: ignore[type-arg]
    record, spec = old["record"], old["spec"]
    assert new.run.document() == spec | {"at": record["circumstances"]["at"], "length": 0}
    for name, value in record.items():
        assert json.dumps(getattr(new, name), sort_keys=True) == json.dumps(value, sort_keys=True)
    events = [asdict(event) for event in new.events]
    assert [{k: v for k, v in e.items() if k != "reachable"} for e in events] == old["events"]
    bounds = [asdict(b) | b.closed for b in new.offline]
    names = ("accuracy", "ridge", "lda", "epochs", "flat", "by_video")
    assert [{name: b[name] for name in names} for b in bounds] == [
        {name: b[name] for name in names} for b in old["offline"]
    ]
    summary = {k: v for k, v in old["summary"].items() if k != "run"}
    assert {k: v for k, v in new.summary().items() if k in summary} == summary


def test_every_number_comes_over(tmp_path: Path) -> None:
    files = sorted(OLD.rglob("*.json"))
    assert convert_stores([OLD], tmp_path) == len(files) == 4
    found = {
        str(r.run.document()): r
        for store in (Store(tmp_path), Store(tmp_path / "tuning"))
        for r in store.results()
    }
    for file in files:
        old = json.loads(file.read_text())
        at = old["record"]["circumstances"]["at"]
        (new,) = (
            r for r in found.values() if r.run.document() == old["spec"] | {"at": at, "length": 0}
        )
        equal(new, old)
    assert convert_stores([OLD], tmp_path) == 0  # again: they are there
    assert convert_stores([tmp_path], tmp_path / "copy") == 3  # and a new store may be the source


def test_a_split_that_was_named_and_one_that_was_not_are_one_run(tmp_path: Path) -> None:
    named = [f for f in OLD.rglob("*.json") if json.loads(f.read_text())["spec"]["at"] == "head"]
    assert named
    convert_stores([OLD], tmp_path)
    results = [*Store(tmp_path).results(), *Store(tmp_path / "tuning").results()]
    assert {f.stem for f in named}.isdisjoint(r.id for r in results)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"record": 1, "spec": 2}'])
def test_a_damaged_old_file_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / f"{1:016x}.json").write_text(text)
    with pytest.raises(BadState, match="no result of a run, or damaged"):
        convert_stores([tmp_path], tmp_path / "new")


def test_content_under_the_wrong_name_is_told(tmp_path: Path) -> None:
    file = next(OLD.glob("*.json"))
    document = json.loads(file.read_text())
    document["spec"]["seed"] += 1
    (tmp_path / file.name).write_text(json.dumps(document))
    with pytest.raises(BadState, match="not the identity of what it holds"):
        convert_stores([tmp_path], tmp_path / "new")


def call(*args: str) -> str:
    result = CliRunner().invoke(main, ["results", *args], catch_exceptions=False)
    return result.output


def test_the_commands(tmp_path: Path) -> None:
    new = tmp_path / "new"
    shutil.copytree(OLD, tmp_path / "old")
    assert f"4 runs copied into {new}" in call("convert", str(tmp_path / "old"), str(new))
    assert "3 runs, all intact" in call("check", str(new))
    assert json.loads(call("check", str(new), "--json"))["digest"] == Store(new).digest()
    file = next(f for f in new.glob("*/*.jsonl") if f.name != "shared.jsonl")
    file.write_bytes(file.read_bytes().replace(b'"learned":', b'"learned":1', 1))
    with pytest.raises(Damaged):
        Store(new).results()
    assert "line 1: its content was changed" in call("check", str(new)).replace("\n", " ")
    assert "1 damaged line moved" in call("repair", str(new))
    assert "2 runs, all" in call("check", str(new))
    assert "there is no folder" in call("check", str(tmp_path / "nowhere"))
