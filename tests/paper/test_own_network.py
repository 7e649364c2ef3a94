"""ResNet-18 from layer4.1: VERSE with two settings beside the others."""

from __future__ import annotations

from pathlib import Path

from paper import own_network
from tests.paper.test_causes import done
from verse.experiments.recipe import read_recipe

RECIPES = Path(__file__).parents[2] / "recipes"
SCORES = {
    own_network.VERSE: 0.8,
    own_network.PAPERS: 0.6,
    "slda": 0.9,
    "tinyer": 0.8,
}


def test_both_settings_of_verse_have_a_row_and_differences_are_judged() -> None:
    runs = [
        run
        for run in read_recipe(RECIPES / "resnet18-paper.toml").runs
        if own_network.name_of(run) in SCORES
    ]
    page = own_network.section(
        [done(run, SCORES[own_network.name_of(run)]) for run in runs], RECIPES
    )
    assert (
        "- eth80, every view, class-iid: slda has the highest mean; the tuned VERSE is ahead of "
        "verse, the paper's settings; behind slda; not told apart from tinyer."
    ) in page.text
    (table,) = page.tables
    assert table.rows[0][0].text == "slda"
    assert {row[0].text for row in table.rows} == set(SCORES)
    last = [cell.text for cell in table.rows[-1]]
    assert last[0] == own_network.PAPERS
    assert last[2].startswith("−0.200") and table.rows[-1][2].bold
    assert last[3] == "0.600" and last[-1] == "3"


def test_one_seed_decides_nothing() -> None:
    runs = [run for run in read_recipe(RECIPES / "resnet18-asl.toml").runs if run.seed == 0]
    page = own_network.section([done(run, 0.5) for run in runs], RECIPES)
    assert "the tuned VERSE is not judged yet" in page.text
    assert {row[2].text for row in page.tables[0].rows} == {"–"}


def test_without_runs_it_says_so() -> None:
    assert own_network.section([], RECIPES).text.endswith(own_network.NONE)
