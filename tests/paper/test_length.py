"""Accuracy against the length of a stream: who passes closed forms, and at which length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paper import length
from tests.reports.made import made
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Those of the figure, on asl in iid."""
    wanted = length.identities(RECIPES)
    every = [run for kind in ("length", "scale") for run in read(f"{kind}-asl")]
    return [run for run in every if run.id in wanted and run.order == "iid"]


def read(name: str) -> list[Run]:
    return read_recipe(RECIPES / f"{name}.toml").runs


def done(run: Run, right: float) -> Result:
    """A finished run in which this share is right."""
    made_up = made(run.learner, run.seed, [right + 0.01 * (run.seed % 3)] * 6, [])
    return replace(made_up, run=run, id=run.id, frames=run.length or 36_250)


def grown(run: Run) -> float:
    """The network is behind at first and ahead in the end."""
    steps = {100: 0, 300: 1, 1000: 2, 3000: 3, 10000: 4, 0: 5}[run.length]
    trained = run.learner in length.GROUPS["trained network"]
    return 0.3 + 0.12 * steps if trained else 0.5 + 0.03 * steps


def test_the_shortened_streams_and_the_whole_one_belong_to_it(runs: list[Run]) -> None:
    assert {run.length for run in runs} == {0, 100, 300, 1000, 3000, 10000}
    by = [{run.learner for run in runs if bool(run.length) == short} for short in (True, False)]
    assert by[0] == by[1] >= {*length.CLOSED, "verse", "verse-joint"}


def test_a_run_with_a_reference_belongs_to_it_if_it_has_the_same_settings() -> None:
    wanted = length.identities(RECIPES)
    found = {(r.dataset, r.seed) for r in read("scale-reference") if r.id in wanted}
    assert ("folder:eth80", 0) in found and ("folder:gtsrb_full", 4) in found
    assert "folder:asl" not in {data for data, _ in found}  # there ncm is tuned to the grid


def test_at_which_length_a_network_passes_closed_forms(runs: list[Run], tmp_path: Path) -> None:
    page = length.section([done(run, grown(run)) for run in runs], RECIPES, tmp_path)
    text = page.text
    assert "asl (unlike ImageNet), iid: ahead from 3,000 frames on; at 36,250 frames" in text
    assert (tmp_path / "length.png").stat().st_size > 1000
    (table,) = (part for part in page.parts if isinstance(part, length.Table))
    assert table.head[1:] == ["100", "300", "1,000", "3,000", "10,000", "all"]
    (row,) = (row for row in table.rows if row[0].text == "asl iid, trained network")
    assert [cell.bold for cell in row[1:]] == [False] * 3 + [True] * 3
    assert row[1].text.endswith("▼")
    (own,) = (row for row in table.rows if row[0].text == "asl iid, default, verse-joint")
    assert not any("verse-joint" in cell.text for cell in own[1:])  # the row's title has it
    assert length.RATES in text
    assert len(table.head) <= 7  # no table wider than a screen


def test_what_is_not_finished_is_not_judged(runs: list[Run], tmp_path: Path) -> None:
    nothing = length.section([], RECIPES, tmp_path)
    assert length.NONE in nothing.text and not nothing.parts
    two = [done(run, 0.5) for run in runs if run.seed < 2]  # seeds
    page = length.section(two, RECIPES, tmp_path)
    assert "asl (unlike ImageNet), iid: fewer than 3 common seeds so far." in page.text
    never = [done(run, 0.5) for run in runs if run.learner != "verse-joint"]
    assert "not ahead at any length up to here" in length.section(never, RECIPES, tmp_path).text
