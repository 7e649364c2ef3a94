"""VERSE clipped and not: where it diverges, and what clipping changes on test videos."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paper import clipping
from paper.source import with_changed
from tests.reports.made import made
from verse.experiments.line import encode
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.experiments.store import Store

RECIPES = Path(__file__).parents[2] / "recipes"


def done(run: Run, right: float, refused: int = 0) -> Result:
    wobble = right + (0.0, 0.01, -0.01)[run.seed % 3]
    made_up = made(run.learner, run.seed, [wobble] * 6, [])
    return replace(made_up, run=run, id=run.id, refused=refused, classes=tuple("abcdefghij"))


@pytest.mark.parametrize(
    ("right", "refused", "spoilt"), [(0.9, 0, False), (0.9, 1, True), (0.15, 0, True)]
)
def test_diverged_is_near_chance_or_refused(right: float, refused: int, spoilt: bool) -> None:
    assert clipping.diverged(done(Run("folder:asl", learner="verse"), right, refused)) is spoilt


def test_the_rates_are_shown_with_and_without_clipping() -> None:
    runs = read_recipe(RECIPES / "tuning-rates.toml").runs
    mine = [run for run in runs if run.learner == "verse" and run.dataset == "folder:asl"]
    free = [run for run in mine if run.settings["clip"] is None and run.settings["beta"] >= 0.1]
    results = [done(run, 0.1 if run in free else 0.9) for run in mine]
    table = clipping.rates_table(results, runs)
    assert table is not None
    by = {(order.text, rate.text): cells for _, order, rate, *cells in table.rows}
    rates = ("0.01", "0.03", "0.1", "0.3")
    assert list(by) == [(order, rate) for order in ("class-instance", "iid") for rate in rates]
    assert [cell.text for cell in by["iid", "0.03"]] == ["0.910", "0.910"]
    assert [cell.text for cell in by["iid", "0.1"]] == ["0.910", "0.110 ✗"]
    assert clipping.sentence(table) == (
        "Without clipping 4 of 8 trials diverged, none at a rate below 0.1; "
        "with it 0 of 8 trials diverged."
    )


def test_both_are_compared_on_the_same_seeds() -> None:
    free = [r for r in read_recipe(RECIPES / "unclipped.toml").runs if r.dataset == "folder:eth80"]
    whole = read_recipe(RECIPES / "scale-eth80.toml").runs
    clipped = [r for r in whole if r.learner == "verse" and r.order in clipping.ORDERS]
    results = [done(r, 0.9) for r in clipped] + [done(r, 0.8) for r in free]
    table = clipping.compared(results, RECIPES)
    assert table is not None and len(table.rows) == 2
    for row in table.rows:
        assert row[5].text.startswith("−0.100") and row[5].bold and row[6].text == "0"
    # with the paper's α, too, where that was run on the whole stream
    other = [
        r
        for r in read_recipe(RECIPES / "virtual-eth80.toml").runs
        if (r.settings["alpha"], r.settings["beta"]) == (0.005, 0.03)
    ]
    more = clipping.compared([*results, *(done(r, 0.95) for r in other)], RECIPES)
    assert more is not None and [row[3].text for row in more.rows] == ["0.03", "0.005"] * 2
    assert more.rows[1][5].text.startswith("+0.050")
    found = clipping.section(results, [], RECIPES)
    assert [part.name for part in found.tables] == ["clipping"]
    assert "is finished yet" in clipping.section([], [], RECIPES).text


def test_a_run_that_both_stores_hold_counts_once(tmp_path: Path) -> None:
    one, two = (made("verse", seed, [0.8]) for seed in (0, 1))
    Store(tmp_path / "ablations").add(encode(one), encode(two))
    assert sorted(r.run.seed for r in with_changed([one], tmp_path)) == [0, 1]
