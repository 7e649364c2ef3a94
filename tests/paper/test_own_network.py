"""ResNet-18 from layer4.1: VERSE with two settings beside the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from paper import own_network
from paper.reading import results_in
from tests.paper import test_causes
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.learners import defaults

RECIPES = Path(__file__).parents[2] / "recipes"
SCORES = {
    own_network.VERSE: 0.8,
    own_network.PAPERS: 0.6,
    "slda": 0.9,
    "tinyer": 0.8,
}


def done(run: Run, right: float) -> Result:
    return replace(test_causes.done(run, right), classes=tuple("abcdefgh"))


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
        "verse (the paper's settings); behind slda; not told apart from tinyer."
    ) in page.text
    (table,) = page.tables
    assert table.rows[0][0].text == "slda"
    assert {row[0].text for row in table.rows} == set(SCORES)
    last = [cell.text for cell in table.rows[-1]]
    assert last[0] == own_network.PAPERS
    assert last[2].startswith("−0.200") and table.rows[-1][2].bold
    assert last[3] == "0.600" and last[-1] == "3"


def test_what_diverged_is_marked_and_not_compared() -> None:
    runs = read_recipe(RECIPES / "resnet18-paper.toml").runs
    results = [
        replace(done(run, 0.7), refused=20 if own_network.name_of(run) == own_network.PAPERS else 0)
        for run in runs
    ]
    page = own_network.section(results, RECIPES)
    assert "Diverged, and so not compared: verse (the paper's settings)." in page.text
    row = next(row for row in page.tables[0].rows if row[0].text == own_network.PAPERS)
    assert row[1].text.endswith("✗") and row[2].text == "–"


def test_an_ordering_that_a_method_lacks_places_nobody() -> None:
    runs = [
        run
        for run in read_recipe(RECIPES / "resnet18-paper.toml").runs
        if run.learner == "slda" or (run.learner, run.order) == ("tinyer", "class-instance")
    ]
    easy = {("slda", "class-iid"): 0.9, ("slda", "class-instance"): 0.5}
    results = [done(run, easy.get((run.learner, run.order), 0.6)) for run in runs]
    rows = own_network.section(results, RECIPES).tables[0].rows
    assert [row[0].text for row in rows] == ["tinyer", "slda"]
    assert rows[0][4].text == "–"


def test_the_recipe_has_the_settings_that_tuning_chose() -> None:
    """Of the trials in ``results/tuning``, by the mean of both orderings."""
    trials = read_recipe(RECIPES / "tuning-resnet18.toml").runs
    known = {r.id: r.mu_all for r in results_in(RECIPES.parent / "results" / "tuning")}
    means: dict[str, dict[str, float]] = {}
    for run in trials:
        by = means.setdefault(run.learner, {})
        settings = json.dumps(dict(run.settings), sort_keys=True)
        by[settings] = by.get(settings, 0.0) + known[run.id]
    for run in read_recipe(RECIPES / "resnet18-paper.toml").runs:
        if run.learner in means and own_network.name_of(run) != own_network.PAPERS:
            by = means[run.learner]
            best = [json.loads(text) for text in by if by[text] == max(by.values())]
            assert dict(run.settings) | defaults_of(run, best[0]) in best, run.learner


def defaults_of(run: Run, named: dict[str, object]) -> dict[str, object]:
    """Those that the trials name and the recipe does not."""
    return {k: v for k, v in defaults(run.learner).items() if k in named and k not in run.settings}


def test_one_seed_decides_nothing() -> None:
    runs = [run for run in read_recipe(RECIPES / "resnet18-asl.toml").runs if run.seed == 0]
    page = own_network.section([done(run, 0.5) for run in runs], RECIPES)
    assert "the tuned VERSE is not judged yet" in page.text
    assert {row[2].text for row in page.tables[0].rows} == {"–"}


def test_without_runs_it_says_so() -> None:
    assert own_network.section([], RECIPES).text.endswith(own_network.NONE)
