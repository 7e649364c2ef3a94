"""Results and recipes, each read once however many tables are made from them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.experiments.store import Store


@cache
def results_in(folder: Path) -> tuple[Result, ...]:
    """The finished runs of a folder; none where there is no folder."""
    return tuple(Store(folder).results()) if folder.is_dir() else ()


@cache
def runs_of(recipe: Path) -> tuple[Run, ...]:
    """The runs of a recipe."""
    return read_recipe(recipe).runs
