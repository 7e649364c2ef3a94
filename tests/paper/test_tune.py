"""Two stages of tuning: what is tried next follows from what was found."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paper import tune
from paper.tuning_table import on_resnet18, one_step_beyond, with_edges
from verse.experiments.recipe import parse, read_recipe
from verse.experiments.run import Run
from verse.reports.tuning import Choice

ROOT = Path(__file__).parents[2]


@dataclass
class Found:
    mu_all: float


@pytest.fixture(autouse=True)
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tune, "RECIPES", tmp_path)
    for name, file in (("RATES", "tuning-rates.toml"), ("SHORT", "tuning-rates-short.toml")):
        (tmp_path / file).write_text((ROOT / "recipes" / file).read_text())
        monkeypatch.setattr(tune, name, tmp_path / file)
    return tmp_path


def results(best: dict[str, dict[str, Any]], data: str = "asl") -> dict[str, Any]:
    """All runs of the first stage on a set; a trial is better the more it has of ``best``."""

    def score(run: Run) -> float:
        wanted = best.get(run.learner, {})
        return sum(run.settings.get(k) == v for k, v in wanted.items()) / 10

    every = [run for recipe in (tune.RATES, tune.SHORT) for run in read_recipe(recipe).runs]
    return {run.id: Found(score(run)) for run in every if run.dataset == f"folder:{data}"}


def test_every_method_that_descends_has_the_same_trials() -> None:
    runs = [run for run in read_recipe(tune.RATES).runs if run.dataset == "folder:asl"]
    for learner in tune.KNOBS:
        tried = {
            (tune.rate_of(run.settings), run.settings["clip"])
            for run in runs
            if run.learner == learner
        }
        assert tried == {(rate, clip) for rate in (0.01, 0.03, 0.1, 0.3) for clip in (1.0, None)}


def test_rates_go_on_beyond_an_edge() -> None:
    found = results(
        {"tinyer": {"lr": 0.3, "clip": None}, "derpp": {"lr": 0.1}, "verse": {"beta": 0.01}}
    )
    edges = [pair for pair in tune.edges("asl", found) if pair[0] in ("tinyer", "derpp", "verse")]
    assert edges == [
        ("verse", {"alpha": 0.003, "beta": 0.003, "clip": 1.0}),
        ("verse", {"alpha": 0.003, "beta": 0.003, "clip": None}),
        ("tinyer", {"clip": 1.0, "lr": 1.0}),
        ("tinyer", {"clip": None, "lr": 1.0}),
    ]


def test_numbers_of_closed_forms_go_on_too() -> None:
    best = {
        "slda-grid": {"shrinkage": 0.1},
        "slda": {"shrinkage": None},  # by a formula: no number, no edge
        "ridge": {"ridge": 0.1, "features": "grid"},
        "ranpac": {"ridge": 1.0},
    }
    closed = [pair for pair in tune.edges("asl", results(best)) if pair[0] in best]
    assert closed == [
        ("slda-grid", {"shrinkage": 0.3}),
        ("ridge", {"features": "grid", "ridge": 0.03}),
    ]


def test_the_second_stage_begins_with_the_best_of_the_first(recipes: Path) -> None:
    found = results({"verse": {"beta": 0.1, "clip": None}, "tinyer": {"lr": 0.1, "clip": 1.0}})
    trials = tune.second_stage("asl", found)
    of = {name: [s for learner, s in trials if learner == name] for name in tune.KNOBS}
    assert all(len(mine) == 1 + tune.OTHERS for mine in of.values())
    assert of["verse"][0] == {"alpha": 0.1, "beta": 0.1, "clip": None}
    assert [s["alpha"] for s in of["verse"]] == [0.1, 0.05, 0.2, 0.1]
    assert of["verse"][3]["lam"] == 0.03
    assert of["tinyer"][0] == {"clip": 1.0, "lr": 0.1}  # then the next best
    recipe = parse(tune.document("t", "asl", trials, tune.SEEDS), "t")
    assert {run.validation for run in recipe.runs} == {"last:1"}
    assert {run.seed for run in recipe.runs} == {100, 101, 102}


def test_what_was_chosen_goes_into_the_recipe(recipes: Path) -> None:
    found = results({"verse": {"beta": 0.1, "clip": None}})
    (recipes / "tuning-knobs-asl.toml").write_text(
        tune.document("t", "asl", tune.second_stage("asl", found), tune.SEEDS)
    )
    for run in read_recipe(recipes / "tuning-knobs-asl.toml").runs:
        found[run.id] = Found(1.0 if run.settings.get("alpha") == 0.2 else 0.5)
    recipe = recipes / "scale-asl.toml"
    recipe.write_text((ROOT / "recipes/scale-asl.toml").read_text())
    for _ in range(2):  # the second time it takes the place of the first
        tune.write_tuned(recipe, "asl", tune.tuned("asl", found))
    table = tomllib.loads(recipe.read_text())["tuned"]
    assert table["verse"] == {"alpha": 0.2, "beta": 0.1, "clip": "none"}
    assert table["verse-no-virtual"] == {"beta": 0.1, "clip": "none"}
    assert table["verse-new-sample"] == table["verse"]
    assert "slda" in table
    assert recipe.read_text().count("[tuned]") == 1


def test_the_other_methods_are_tuned_on_the_short_sets(recipes: Path) -> None:
    runs = read_recipe(tune.SHORT).runs
    assert {run.dataset for run in runs} == {"folder:eth80", "folder:gtsrb", "folder:icub_camera"}
    assert all(run.validation for run in runs)
    compared = {run.learner for run in read_recipe(ROOT / "recipes/scale-eth80.toml").runs}
    tuned = {run.learner for run in [*runs, *read_recipe(tune.RATES).runs]}
    # those that follow another method, and the default, which has one setting for all data
    assert compared - tuned == {*tune.FOLLOW, "verse-joint"}
    by = {name: [run for run in runs if run.learner == name] for name in tuned}
    for mine in (by["gem"], by["si"], by["gdumb"]):
        tried = {(run.settings["lr"], run.settings["clip"]) for run in mine}
        assert tried == {(rate, clip) for rate in (0.01, 0.03, 0.1, 0.3) for clip in (1.0, None)}
    # and they meet the same frames, memory and seeds as the others
    same = [
        {(r.dataset, r.thin, r.every, r.steps, r.capacity, r.seed) for r in every.runs}
        for every in (read_recipe(tune.RATES), read_recipe(tune.SHORT))
    ]
    assert same[1] < same[0]


def test_what_was_chosen_for_them_goes_into_the_recipe_too(recipes: Path) -> None:
    best = {"gem": {"lr": 0.3}, "klda": {"gamma": 3.0}, "tinyer": {"lr": 0.03, "clip": 1.0}}
    found = results(best, "eth80")
    beyond = [settings for learner, settings in tune.edges("eth80", found) if learner == "gem"]
    assert [settings["lr"] for settings in beyond] == [1.0, 1.0]
    trials = tune.second_stage("eth80", found)
    assert {learner for learner, _ in trials} == set(tune.KNOBS)
    (recipes / "tuning-knobs-eth80.toml").write_text(
        tune.document("t", "eth80", trials, tune.SEEDS)
    )
    table = tomllib.loads(tune.tuned("eth80", found))["tuned"]
    assert (table["gem"]["lr"], table["klda"]) == (0.3, {"gamma": 3.0})
    assert table["tinyer-2step"] == {"clip": 1.0, "lr": 0.03}


def test_rates_are_one_and_three() -> None:
    assert [tune.next_rate(r) for r in (0.1, 0.3, 1.0)] == [0.3, 1.0, 3.0]
    assert [tune.next_rate(r, down=True) for r in (0.1, 0.03)] == [0.03, 0.01]


def test_the_driver_names_recipes_that_exist() -> None:
    from paper import grid

    for step in grid.STEPS:
        kind, _, about = step.partition(":")
        file = about if kind in ("recipe", "ablation", "tuning") else f"scale-{about}"
        assert read_recipe(ROOT / "recipes" / f"{file}.toml").runs, step


def test_the_driver_hands_its_options_to_every_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from paper import grid

    calls: list[list[str]] = []

    def run(command: list[str], *, check: bool) -> SimpleNamespace:
        calls.append(command[3:])
        return SimpleNamespace(returncode=int("joined" in command[4]))

    monkeypatch.setattr(grid.subprocess, "run", run)
    arguments = ["grid", "--engine", "ray", "--address", "here:1", "recipe:joined", "main:asl"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stopped:
        grid.main()
    assert stopped.value.code == 1  # one failed, the other was done all the same
    assert [call[1] for call in calls] == ["recipes/joined.toml", "recipes/scale-asl.toml"]
    assert all(call[4:] == ["--engine", "ray", "--address", "here:1"] for call in calls)


def test_a_choice_at_the_edge_of_the_second_stage_is_marked() -> None:
    runs = [
        Run("folder:asl", learner="derpp", settings={"beta": beta, "alpha": 0.5, "lr": lr})
        for beta, lr in ((0.5, 0.1), (1.0, 0.1), (4.0, 1.0))
    ]

    def shown(beta: float) -> str:
        settings = {"beta": beta, "alpha": 0.5, "lr": 1.0}
        return with_edges(Choice("folder:asl", "derpp", settings, 0.5, 3, 1, 0.4), runs)

    # the first stage went on where the best rate was at an edge
    assert shown(4.0) == "beta = 4.0 (largest tried), alpha = 0.5, lr = 1.0"
    assert shown(0.5).startswith("beta = 0.5 (smallest tried)")
    assert shown(1.0).startswith("beta = 1.0, ")


def test_one_more_trial_goes_beyond_an_edge(recipes: Path) -> None:
    tried = [("derpp", {"beta": beta, "lr": 0.1}) for beta in (0.5, 1.0, 4.0)]
    tried += [("er-ace", {"recent": recent, "lr": 0.1}) for recent in (2, 5, 20)]
    second = recipes / "tuning-knobs-eth80.toml"
    second.write_text(tune.document("t", "eth80", tried, tune.SEEDS))
    best = {"derpp": 4.0, "er-ace": 5}
    found: Any = {
        run.id: Found(0.5 + 0.1 * (best[run.learner] in run.settings.values()))
        for run in read_recipe(second).runs
    }
    further = [("derpp", {"beta": 16.0, "lr": 0.1})]  # 5 lies between others
    assert tune.beyond("eth80", found) == further

    runs = parse(tune.document("t", "eth80", further, tune.SEEDS), "beyond").runs
    (recipes / "tuning-beyond-eth80.toml").write_text(
        tune.document("t", "eth80", further, tune.SEEDS)
    )
    assert one_step_beyond(found, recipes) is None  # not finished
    table = one_step_beyond(found | {run.id: Found(0.62) for run in runs}, recipes)
    assert table is not None
    assert [cell.text for cell in table.rows[0]] == [
        "eth80",
        "`derpp`",
        "beta = 4.0 → 16.0",
        "+0.020",
    ]


def test_every_trial_on_resnet18_is_shown_the_best_of_a_method_first() -> None:
    runs = read_recipe(ROOT / "recipes" / "tuning-resnet18.toml").runs
    best = {"alpha": 0.003, "beta": 0.03, "clip": 1.0}
    found = {run.id: Found(0.9 if dict(run.settings) == best else 0.5) for run in runs}
    half = next(run.id for run in runs if run.learner == "slda")
    table = on_resnet18({i: r for i, r in found.items() if i != half}, ROOT / "recipes")
    assert table is not None
    assert [cell.text for cell in table.rows[0]][:3] == [
        "`verse`",
        "alpha = 0.003, beta = 0.03, clip = 1.0",
        "0.900",
    ]
    assert table.rows[0][2].bold and not table.rows[1][2].bold
    # a trial counts with both orderings only
    assert len(table.rows) == len(runs) // 2 - 1
