"""Rates and clipping with room for all classes, beside what was chosen."""

from __future__ import annotations

from pathlib import Path

from paper import room
from paper.tune import rate_of
from tests.paper.test_causes import done
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run

RECIPES = Path(__file__).parents[2] / "recipes"
RUNS = read_recipe(RECIPES / "tuning-room.toml").runs


def finished(runs: list[Run], best: float) -> list[Result]:
    """Clipped runs with the rate ``best`` are the best."""

    def score(run: Run) -> float:
        return 0.8 if room.how(run.settings) == (best, True) else 0.7

    return [done(run, score(run)) for run in runs]


def test_every_method_has_the_same_trials_and_what_was_chosen_is_one_of_them() -> None:
    ways = {(rate, clipped) for rate in (0.03, 0.1, 0.3, 1.0) for clipped in (True, False)}
    places = {(run.dataset, run.learner) for run in RUNS}
    assert len(places) == 30
    for dataset, learner in places:
        mine = [run for run in RUNS if (run.dataset, run.learner) == (dataset, learner)]
        assert {room.how(run.settings) for run in mine} == ways
        assert len(mine) == 2 * len(ways)
        taken = next(
            run
            for run in read_recipe(RECIPES / f"scale-{dataset.removeprefix('folder:')}.toml").runs
            if run.learner == learner
        )
        assert dict(taken.settings) in [dict(run.settings) for run in mine]
        assert all(run.validation for run in mine)  # never on test videos


def test_the_gain_of_another_choice_is_shown() -> None:
    runs = [
        run
        for run in RUNS
        if run.dataset == "folder:eth80" and run.learner in ("tinyer", "verse", "remind")
    ]
    page = room.section(finished(runs, 0.1)[:-1], RECIPES)  # a trial of remind is missing
    (table,) = page.tables
    rows = {row[1].text: [cell.text for cell in row[2:]] for row in table.rows}
    assert rows == {
        "`verse`": ["0.03, clipped", "0.700", "0.1, clipped", "0.800", "+0.100"],
        "`tinyer`": ["1, clipped", "0.700", "0.1, clipped", "0.800", "+0.100"],
    }
    assert "In 0 of 2 cases the chosen one is the best" in page.text
    # of equals the chosen one is taken
    equal = [run for run in runs if run.learner == "tinyer"]
    page = room.section([done(run, 0.7) for run in equal], RECIPES)
    assert page.tables[0].rows[0][4].text == "the same"
    same = [run for run in RUNS if (run.dataset, run.learner) == ("folder:gtsrb", "verse")]
    assert rate_of(same[0].settings) == 0.03
    page = room.section(finished(same, 0.3), RECIPES)
    assert page.text.endswith("In 1 of 1 cases the chosen one is the best of the eight again.")
    assert page.tables[0].rows[0][4].text == "the same"


def test_without_runs_it_says_so() -> None:
    assert room.section([], RECIPES).text.endswith(room.NONE)
