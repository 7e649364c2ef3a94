"""The virtual step: does it help, and when; and one thing changed at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paper import virtual
from tests.reports.made import made
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run

RECIPES = Path(__file__).parents[2] / "recipes"
PARTS = """
datasets = ["folder:eth80"]
orders = ["class-instance"]
capacities = ["23/class"]
seeds = 3
offline = false
learners = [
    "verse",
    {name = "verse", sweep = {lam = [0.0, 0.3]}},
    {name = "verse", memories = ["fifo"]},
    {name = "verse", capacities = ["5/class", "23/class"]},
    {name = "tinyer", capacities = ["5/class", "23/class"]},
]

[tuned]
verse = {lam = 0.3, clip = "none"}
"""


def done(run: Run, right: float) -> Result:
    noise = (0.0, 0.01, -0.01)[run.seed % 3] + 0.002 * (run.seed % 2)
    made_up = made(run.learner, run.seed, [right + noise] * 6, [])
    return replace(made_up, run=run, id=run.id, classes=tuple("abcdefghij"))


@pytest.fixture(scope="module")
def named() -> list[Run]:
    return [run for run in read_recipe(RECIPES / "virtual-eth80.toml").runs if run.order == "iid"]


def helped(run: Run) -> float:
    """It helps with a small step and hurts with a large one, whatever β."""
    return {0.0: 0.7, 0.005: 0.7, 0.05: 0.8, 0.5: 0.6}[run.settings["alpha"]]


def test_gains_are_against_no_virtual_step_at_the_same_rate(named: list[Run]) -> None:
    found = virtual.collect([done(run, helped(run)) for run in named], named)
    (place,) = found
    assert place == ("eth80", "iid") and len(found[place]) == 12
    gains = virtual.gains(found[place])
    assert len(gains) == 9 and all(e.n == 10 for e in gains.values())
    assert gains[virtual.Rates(0.05, 0.1)].mean == pytest.approx(0.1)
    text = virtual.sentence(place, gains, 100)
    assert "of 9 combinations of α and β it helps in 3, hurts in 3; the largest" in text
    assert "gain is +0.100" in text
    assert "at α = 0.05, β = 0.01." in text and "diverged" not in text


def test_where_it_diverges_without_the_virtual_step_there_is_no_gain(named: list[Run]) -> None:
    def chance(run: Run) -> bool:  # at the large β at once, at a smaller one by the virtual step
        large = run.settings["beta"] == 0.1 and (run.settings["alpha"] or run.seed == 3)
        return bool(large) or run.settings["alpha"] == 0.5

    results = [done(run, 0.1 if chance(run) else helped(run)) for run in named]
    found = virtual.collect(results, named)
    ((place, tried),) = found.items()
    gains = virtual.gains(tried)
    assert {rates.beta for rates in gains} == {0.01, 0.03}
    assert gains[virtual.Rates(0.5, 0.03)].high < 0  # it hurts
    text = virtual.sentence(place, gains, 100, virtual.spoilt(tried))
    assert text.endswith("β = 0.1 diverged already without the virtual step and is left out.")
    (table,) = virtual.tables(found)
    marked = [all(cell.text.endswith("✗") for cell in row[1:]) for row in table.rows]
    assert marked == [False, False, True]


def test_the_page_shows_what_there_is(named: list[Run], tmp_path: Path) -> None:
    some = [done(run, helped(run)) for run in named if run.settings["beta"] == 0.1]
    first, parts = virtual.sections(some, RECIPES, tmp_path)
    assert f"- eth80, iid, {some[0].frames:,} frames: of 3 combinations" in first.text
    assert (tmp_path / "virtual.png").stat().st_size > 1000
    (table,) = (part for part in first.parts if isinstance(part, virtual.Table))
    assert table.head == ["ordering", "α = 0", "α = 0.005", "α = 0.05", "α = 0.5"]
    (row,) = table.rows
    assert row[3].text.endswith("(+0.100 ▲)") and row[3].bold
    assert row[4].text.endswith("(−0.100 ▼)")
    assert virtual.NO_PARTS in parts.text
    nothing, _ = virtual.sections([], RECIPES, tmp_path)
    assert virtual.NONE in nothing.text and not nothing.parts


def test_few_seeds_decide_nothing(named: list[Run]) -> None:
    found = virtual.collect([done(r, helped(r)) for r in named if r.seed < 2], named)
    ((place, tried),) = found.items()
    assert virtual.gains(tried) == {}
    assert "fewer than 3 common seeds" in virtual.sentence(place, {}, 100)


def test_one_thing_changed(tmp_path: Path) -> None:
    (tmp_path / "parts-eth80.toml").write_text(PARTS)
    runs = read_recipe(tmp_path / "parts-eth80.toml").runs

    def share(run: Run) -> float:
        if run.learner == "tinyer":
            return 0.75 if run.capacity == "23/class" else 0.5
        return 0.6 if run.settings["lam"] == 0 else 0.7 if run.capacity == "23/class" else 0.4

    results = [done(run, share(run)) for run in runs]
    # other orderings are on another page
    mixed = [replace(run, order="iid") for run in runs]
    results += [done(run, 0.1) for run in mixed]
    table = virtual.parts_table("eth80", results, [*runs, *mixed])
    assert table is not None
    assert {row[3].text for row in table.rows} == {"3"}
    rows = {row[0].text: (row[2].text, row[2].bold) for row in table.rows}
    assert list(rows) == [
        "as tuned",
        "lam = 0.0",
        "policy fifo",
        "memory 5/class",
        "tinyer, memory 5/class",
        "tinyer",
    ]
    assert rows["as tuned"] == ("–", False)
    assert rows["lam = 0.0"][0].startswith("−0.100") and rows["lam = 0.0"][1]
    # another method is compared at the same memory
    assert rows["tinyer, memory 5/class"][0].startswith("+0.100")
    assert rows["tinyer"][0].startswith("+0.050")
    assert virtual.parts_table("eth80", [], runs) is None
