"""Recipes: which runs a TOML file means, and what it refuses."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from verse.experiments.grid import plan_tasks
from verse.experiments.recipe import parse, read_recipe
from verse.experiments.store import Store
from verse.types import BadSetting

BASE = 'datasets = ["tabletop"]\n'
CLOSED_FORMS = {"slda", "slda-grid", "ridge", "ranpac", "ncm"}


def test_every_combination_is_a_run_and_equal_ones_are_one() -> None:
    recipe = parse(
        BASE
        + """
        title = "all"
        orders = ["iid", "instance"]
        capacities = ["4%", "20/class"]
        seeds = 2
        learners = ["verse", {name = "verse"}, {name = "tinyer", seeds = [7], orders = ["iid"]}]
        """,
        "x",
    )
    assert recipe.title == "all"
    assert len(recipe.runs) == 2 * 2 * 2 + 2
    assert len({run.id for run in recipe.runs}) == len(recipe.runs)
    assert {(run.order, run.seed) for run in recipe.runs if run.learner == "tinyer"} == {("iid", 7)}
    assert [run.seed for run in recipe.runs] == sorted(run.seed for run in recipe.runs)


def test_the_nearest_word_counts() -> None:
    recipe = parse(
        """
        thin = 2
        every = 5
        datasets = ["tabletop", {name = "folder:mine", thin = 3, holdout = "last:2"}]
        backbones = [{name = "resnet18", at = "fc"}]
        learners = [{name = "verse", every = 1, batchnorm = "train", settings = {r = 0.4}}, "ncm"]
        [tuned]
        verse = {r = 0.1, beta = 0.03}
        """,
        "x",
    )
    mine = {(run.learner, run.dataset): run for run in recipe.runs}
    verse = mine["verse", "folder:mine"]
    assert (verse.thin, verse.every, verse.holdout, verse.at) == (3, 1, "last:2", "fc")
    assert (verse.batchnorm, dict(verse.settings)) == ("train", {"beta": 0.03, "r": 0.4})
    assert (mine["ncm", "tabletop"].thin, mine["ncm", "tabletop"].every) == (2, 5)


def test_the_memory_follows_the_ordering_unless_named() -> None:
    text = BASE + 'orders = ["iid", "instance"]\nlearners = ["verse"]\n'
    assert [run.memory for run in parse(text, "x").runs] == ["class-balanced", "reservoir"]
    named = parse(text + 'memories = ["reservoir", "class-balanced"]', "x")
    assert {run.id for run in parse(text, "x").runs} < {run.id for run in named.runs}


def test_a_sweep_goes_through_all_settings() -> None:
    text = BASE + 'learners = [{name = "der", sweep = {lr = [0.1, 1], clip = ["none", 1.0]}}]'
    found = [dict(run.settings) for run in parse(text, "x").runs]
    assert len(found) == 4
    assert {"lr": 1.0, "clip": None} in found


SWEEP = "{" + ", ".join(f"{name} = {list(range(50))}" for name in ("r", "lr", "alpha")) + "}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BASE + 'learners = ["vers"]', "did you mean 'verse'"),
        (BASE + 'learners = ["verse"]\nordes = ["iid"]', "did you mean 'orders'"),
        (BASE + 'learners = [{name = "verse", setting = {r = 1}}]', "did you mean 'settings'"),
        (BASE + 'learners = [{name = "verse", settings = {rr = 1}}]', "It has: alpha"),
        (BASE + 'learners = ["verse"]\nseeds = "many"', "seeds is a number"),
        (BASE + 'learners = ["verse"]\nseeds = "5-3"', "above the last"),
        (BASE + 'learners = ["verse"]\norders = "iid"', "orders is a list"),
        (BASE + 'learners = ["verse"]\n[tuned]\nvers = {r = 1}', "did you mean 'verse'"),
        (BASE + 'learners = [{name = "verse", sweep = {r = 1}}]', "sweep is a table"),
        (BASE + 'learners = "verse"', "learners is a list"),
        (BASE + "learners = [5]", "learner is text"),
        (BASE + "learners = [[]]", "learner is text"),
        (BASE + 'learners = ["verse"]\nthin = "two"', "thin is a whole number"),
        (BASE + 'learners = ["verse"]\noffline = 1', "offline is true or false"),
        (BASE + 'learners = ["verse"]\noptions = []', "options is a table"),
        (BASE + 'learners = ["verse"]\noptions = {day = 1979-05-27}', "options: day is text"),
        (BASE + 'learners = [{name = "verse", settings = 3}]', "settings is a table"),
        (BASE + 'learners = ["verse"]\nseeds = 10_000_000_000', "at most 20,000"),
        (BASE + 'learners = ["verse"]\nseeds = "0-9999999999"', "at most 20,000"),
        (BASE + f'learners = [{{name = "verse", sweep = {SWEEP}}}]', "more than 20,000 runs"),
        (BASE + 'learners = ["verse"]\nthin = ' + "9" * 30, "too large"),
        (BASE + 'learners = ["verse"]\nthin = ' + "9" * 9999, "not valid TOML"),
        ("a = " + "[" * 9999, "not valid TOML"),
        (BASE, "name the learners"),
        ('learners = ["verse"]', "name the data sets"),
        ("learners = [", "not valid TOML"),
    ],
)
def test_mistakes_are_named(text: str, words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        parse(text, "x")


def test_options_may_be_lists(tmp_path: Path) -> None:
    recipe = parse(BASE + 'learners = ["ncm"]\noptions = {days = [1, [2, 3]]}', "x")
    tasks = plan_tasks(recipe.runs, Store(tmp_path))
    assert recipe.runs[0].id in {task.id for task in tasks}


def test_all_recipes_of_the_project_can_be_read(root: Path) -> None:
    files = sorted((root / "recipes").rglob("*.toml"))
    assert len(files) > 20
    for file in files:
        recipe = read_recipe(file)
        assert recipe.runs
        assert recipe.title != file.stem


CLOSED_FORMS = ("slda", "slda-grid", "ncm", "ridge", "ranpac", "klda", "fecam")


def test_tuning_never_sees_test_videos_nor_seeds_used_later(root: Path) -> None:
    used = {
        run.seed
        for file in (root / "recipes").glob("*.toml")
        for run in read_recipe(file).runs
        if run.validation is None
    }
    for file in (root / "recipes").glob("tuning-*.toml"):
        runs = read_recipe(file).runs
        assert all(run.validation for run in runs)
        assert not used & {run.seed for run in runs}
        trials = Counter(run.learner for run in runs)
        if "-edges-" in file.name or "-beyond-" in file.name:
            continue  # values beyond an edge: only of those whose best was there
        for closed in CLOSED_FORMS:  # they have no learning rate, so fewer choices
            trials.pop(closed, None)
        # where a method has a setting that others lack, a few more
        most = 1.5 if "resnet18" in file.name else 1
        assert max(trials.values()) <= most * min(trials.values()), f"{file.name}: unequal trials"


def test_what_is_no_recipe(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    (tmp_path / "large.toml").write_bytes(b"#" * (2**20 + 1))
    for name, words in (("latin", "not a text in UTF-8"), ("large", "no recipe")):
        with pytest.raises(BadSetting, match=words):
            read_recipe(tmp_path / f"{name}.toml")
