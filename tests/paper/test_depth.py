"""How much of the network learns: who is ahead, by split and length."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paper import depth
from tests.reports.made import made
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run

RECIPES = Path(__file__).parents[2] / "recipes"
BEST = {("verse", "head"): 0.7, ("slda", "grid"): 0.6}


def done(run: Run) -> Result:
    right = BEST.get((run.learner, run.at or ""), 0.5) + 0.01 * (run.seed % 3)
    made_up = made(run.learner, run.seed, [right] * 6, [])
    return replace(made_up, run=run, id=run.id, frames=run.length or 8460)


def test_each_split_has_a_row_and_the_best_is_named(tmp_path: Path) -> None:
    runs = read_recipe(RECIPES / "depth-gtsrb.toml").runs
    found = depth.section([done(run) for run in runs if run.length == 500], RECIPES, tmp_path)
    assert "iid, 500 frames: the best is verse from head, ahead of slda (+0.100)" in found.text
    assert [table.name for table in found.tables] == ["depth-class-instance", "depth-iid"]
    table = found.tables[0]
    assert table.head == ["learner", "trained from", "500 frames"]
    splits = [f"`{at}`" for at in depth.SPLITS]
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        ("slda", "–"),
        *(("tinyer", split) for split in splits),
        *(("verse", split) for split in splits),
    ]
    assert (tmp_path / "depth.png").stat().st_size > 1000


def test_without_runs_the_section_says_so(tmp_path: Path) -> None:
    assert depth.section([], RECIPES, tmp_path).text == depth.NONE
