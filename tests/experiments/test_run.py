"""The record of a run: its identity, what it refuses, and its way through JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verse.experiments import Run
from verse.experiments.jsonl import read_lines
from verse.experiments.line import USUAL
from verse.experiments.run import LATER, identify
from verse.learners import bind
from verse.types import BadSetting


def test_the_identity_does_not_change() -> None:
    # stored results are found by it: a change here is a new VERSION
    assert Run("tabletop").id == Run("tabletop", memory="reservoir", settings={}).id


def test_stored_results_keep_their_identity(root: Path) -> None:
    """A recipe finds its runs: the learners' defaults and the record still mean the same."""
    lines = (
        line.value for file in (root / "results").rglob("*.jsonl") for line in read_lines(file)
    )
    runs = {
        (line["run"]["learner"], str(line["run"]["settings"])): line
        for line in lines
        if line is not None and "run" in line
    }
    assert len(runs) > 100
    for line in runs.values():  # one of each kind: the others differ in seed and the like
        record = LATER | USUAL | {"at": None} | line["run"]
        assert Run.load(record).id == line["id"], line["run"]


def test_a_split_that_used_to_be_the_default_is_no_other_run() -> None:
    assert Run("tabletop", at="head").id != Run("tabletop", at="fc").id
    document = Run("tabletop").document() | {"at": "head", "settings": {}}
    assert identify(document) == identify(document | {"at": None})


def test_every_choice_changes_the_identity() -> None:
    base = Run("tabletop")
    other: dict[str, Any] = {
        "dataset": "core50",
        "learner": "tinyer",
        "order": "iid",
        "seed": 1,
        "options": {"frames": 8},
        "holdout": "last:2",
        "thin": 2,
        "validation": "last:1",
        "backbone": "resnet18",
        "at": "fc",
        "weights": "random",
        "features": "float16",
        "precision": "bfloat16",
        "batchnorm": "train",
        "settings": {"beta": 0.1},
        "memory": "fifo",
        "capacity": "1%",
        "every": 2,
        "steps": 5,
        "offline": False,
        "fps": 10.0,
        "queue": 1,
        "step_seconds": 0.1,
        "prequential": True,
        "length": 100,
    }
    assert set(other) == set(base.document())
    ids = {Run(**{"dataset": "tabletop"} | {key: value}).id for key, value in other.items()}
    assert len(ids | {base.id}) == len(other) + 1


def test_it_survives_json() -> None:
    run = Run("tabletop", settings={"beta": 0.1, "clip": None}, options={"frames": 4}, fps=5)
    assert Run.load(json.loads(json.dumps(run.document()))).id == run.id


def test_memory_follows_the_paper_per_ordering() -> None:
    rules = {
        order: Run("tabletop", order=order).memory
        for order in ("iid", "class-iid", "instance", "class-instance")
    }
    assert rules == {
        "iid": "class-balanced",
        "class-iid": "class-balanced",
        "instance": "reservoir",
        "class-instance": "reservoir",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": "class-instanc"}, "did you mean 'class-instance'"),
        ({"learner": "vers"}, "did you mean 'verse'"),
        ({"memory": "reservoire"}, "did you mean 'reservoir'"),
        ({"seed": -1}, "whole number from 0"),
        ({"capacity": "lots"}, "a number of samples"),
        ({"capacity": "0"}, "holds nothing"),
        ({"capacity": "0%"}, "above 0"),
        ({"thin": 0}, "thin is a whole number from 1"),
        ({"every": 0}, "every is a whole number"),
        ({"fps": 0.0}, "fps is a number above 0"),
        ({"step_seconds": -1.0}, "step_seconds is a number from 0"),
        ({"settings": {"betta": 1}}, "did you mean 'beta'"),
        ({"settings": {"seed": 1}}, "--seed"),
        ({"settings": {"beta": "fast"}}, "beta is float, not 'fast'"),
        ({"settings": {"C": 1.5}}, "C is int, not 1.5"),
        ({"settings": {"C": True}}, "C is int, not True"),
        ({"settings": {"clip": "much"}}, "clip is None or float, not 'much'"),
        ({"settings": {"beta": 0}}, "verse: beta must be > 0, not 0.0"),
        ({"settings": {"gamma": "1.5"}}, r"gamma must be in \[0, 1\], not 1.5"),
        ({"settings": {"r": "nan"}}, r"r must be in \[0, 1\], not nan"),
        ({"settings": {"clip": -1}}, "clip must be > 0 or None, not -1.0"),
        ({"settings": {"predict_with": "psi"}}, "predict_with must be theta or phi, not 'psi'"),
        ({"learner": "mas", "settings": {"trigger": "every:0"}}, "trigger must be like every:100"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSetting, match=message):
        Run("tabletop", **{"learner": "verse"} | given)


def test_settings_take_the_types_of_the_signature() -> None:
    assert bind("verse", {"beta": "1", "clip": "none", "predict_with": "phi"}) == {
        "beta": 1.0,
        "clip": None,
        "predict_with": "phi",
    }
    assert isinstance(bind("verse", {"beta": 1})["beta"], float)


def test_new_runs_begin_at_the_grid_and_old_records_keep_their_split() -> None:
    assert Run("tabletop").at == Run("tabletop", backbone="resnet18").at == "grid"
    assert Run("tabletop", backbone="my.network").at is None  # it decides itself
    old = Run("tabletop", learner="verse").document() | {"at": None}
    assert (
        Run.load(old).at is None
        and Run("tabletop", learner="verse", at="none").id == Run.load(old).id
    )
    assert Run.load(old).id == "c16f8f78c9d77a22"
