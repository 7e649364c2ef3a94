"""Where VERSE and the default lose accuracy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paper import causes
from tests.reports.made import made
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.reports.tables import Table

RECIPES = Path(__file__).parents[2] / "recipes"


def runs(recipe: str, **wanted: object) -> list[Run]:
    every = read_recipe(RECIPES / f"{recipe}.toml").runs
    return [r for r in every if all(getattr(r, name) == value for name, value in wanted.items())]


def done(run: Run, right: float, offline: list[float] | None = None) -> Result:
    return replace(made(run.learner, run.seed, [right] * 2, offline or []), run=run, id=run.id)


def test_the_largest_loss_is_the_cause() -> None:
    reference = runs("scale-reference", dataset="folder:asl", seed=0)
    results = [done(run, 0.1, [0.9, 0.7]) for run in reference]
    for order, right in (("iid", 0.7), ("class-instance", 0.4)):
        results += [done(run, right) for run in runs("scale-asl", learner="verse", order=order)]
    page = causes.sections(results, RECIPES)
    (table,) = (part for part in page[0].parts if isinstance(part, Table))
    assert [cell.text for cell in table.rows[0]][:5] == ["asl", "0.800", "0.800", "0.700", "0.400"]
    assert [cell.text for cell in table.rows[0]][5:] == ["classes in turn (−0.300)", "1, 10"]
    assert "“classes in turn” costs most on 1 of 1 sets (asl)" in page[0].text
    assert "causes-default.toml" in page[1].text  # not finished


def test_a_small_loss_has_no_cause() -> None:
    small = {"icub_camera": causes.Losses(0.998, 0.993, 0.994, 0.983, 1, 5)}
    assert causes.losses_table(small).rows[0][5].text == "none above 0.02"
    assert causes.sentence(small) == "The result: no step costs 0.02 or more on icub_camera."


def test_the_default_without_its_parts() -> None:
    results = [
        done(run, 0.9 if run.settings.get("weight") == 0 else 0.5)
        for run in runs("causes-default", learner="verse-joint")
    ]
    page = causes.sections(results, RECIPES)
    assert "scale-reference.toml" in page[0].text and not page[0].parts
    (table,) = (part for part in page[1].parts if isinstance(part, Table))
    by = {row[1].text: row[2].text[:5] for row in table.rows}
    assert by["as it is"] == by["average = 0.0"] == "0.500"
    assert by["weight = 0.0"] == by["average = 0.0, weight = 0.0"] == "0.900"
    text = page[1].text
    assert "Without the network: +0.400 in gtsrb_full, class-instance (beyond chance)" in text
    assert "averages: +0.000 in gtsrb_full, class-instance; +0.000 in gtsrb_full, iid; " in text
    assert "holds it back: the network (gtsrb_full, class-instance), the network (" in text
