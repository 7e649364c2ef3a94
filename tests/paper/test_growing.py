"""A memory that grows with the classes beside one with room for all from the start."""

from __future__ import annotations

from pathlib import Path

from paper import growing
from tests.paper.test_causes import done
from verse.experiments.recipe import read_recipe
from verse.reports.tables import Table

RECIPES = Path(__file__).parents[2] / "recipes"


def test_both_are_compared_on_common_seeds() -> None:
    grown = [r for r in read_recipe(RECIPES / "growing.toml").runs if r.dataset == "folder:eth80"]
    fixed = [
        run
        for run in read_recipe(RECIPES / "scale-eth80.toml").runs
        if run.learner in ("verse", "tinyer") and run.order == "class-instance"
    ]
    # they differ in their memory alone
    settings = {run.learner: run.settings for run in grown}
    assert all(settings[run.learner] == run.settings for run in fixed)
    results = [done(run, 0.5) for run in grown] + [done(run, 0.8) for run in fixed]
    page = growing.section(results, RECIPES)
    (table,) = (part for part in page.parts if isinstance(part, Table))
    rows = {row[1].text: [cell.text for cell in row] for row in table.rows}
    assert rows.keys() == {"`verse`", "`tinyer`"}  # the third has nothing to stand beside
    assert rows["`verse`"][:4] == ["eth80", "`verse`", "0.800", "0.500"]
    assert rows["`verse`"][4].startswith("−0.300")
    assert {record["n"] for record in table.records} == {5}


def test_without_runs_it_says_so() -> None:
    page = growing.section([], RECIPES)
    assert "growing.toml" in page.text and not page.parts
