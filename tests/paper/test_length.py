"""The figure of accuracy against the length of a stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from paper import length
from verse.experiments.recipe import read_recipe

ROOT = Path(__file__).parents[2]


def test_the_shortened_streams_and_the_whole_one_belong_to_it() -> None:
    wanted = length.identities(ROOT / "recipes")
    short = read_recipe(ROOT / "recipes/length-asl.toml").runs
    assert {run.length for run in short} == {100, 300, 1000, 3000, 10000}
    assert {run.id for run in short} <= wanted
    whole = read_recipe(ROOT / "recipes/scale-asl.toml").runs
    assert {run.learner for run in whole if run.id in wanted} == {run.learner for run in short}


def test_means_are_over_seeds_and_in_order(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    curve = length.Curve()
    for frames, value in ((300, 0.5), (100, 0.2), (300, 0.7)):
        curve.points[frames].append(value)
    lengths, means, spread = curve.means()
    assert lengths == [100, 300]
    assert means == pytest.approx([0.2, 0.6])
    assert spread == pytest.approx([0.0, 0.1])
    length.draw({("asl", "iid", "verse"): curve, ("asl", "iid", "slda"): curve}, tmp_path)
    assert (tmp_path / "length.png").stat().st_size > 1000
