"""A small store of real runs over points, made once, for all tests of reports."""

from __future__ import annotations

import os
from pathlib import Path

import filelock
import pytest

from verse.experiments import execute, prepare
from verse.experiments.line import encode
from verse.experiments.prepare import Prepared, preparation_key
from verse.experiments.recipe import parse
from verse.experiments.store import Store

ALLOW = ("verse_toy.load", "verse_toy.flat")
HEAD = """
datasets = ["verse_toy.load"]
backbones = ["verse_toy.flat"]
options = {classes = 4, videos = 4, frames = 3}
"""
TABLE = (
    HEAD
    + """
orders = ["iid", "class-instance"]
capacities = ["12"]
seeds = 3
learners = ["verse", "verse-no-virtual", "tinyer", "gdumb", "la-maml", "ncm", "slda"]
"""
)
ABLATIONS = (
    HEAD
    + """
orders = ["class-instance"]
capacities = ["4", "12"]
seeds = 2
learners = ["verse", {name = "tinyer", seeds = 1}]
""",
    HEAD
    + """
orders = ["iid", "class-instance"]
capacities = ["12"]
seeds = 2
learners = [
    {name = "verse", sweep = {lam = [0.0, 0.3, 1.0]}},
    {name = "verse", sweep = {r = [0.0, 0.4]}},
    {name = "verse", settings = {gamma = 0.0}},
    {name = "verse", settings = {gamma = 0.0, r = 1.0}},
    {name = "verse", memories = ["fifo", "reservoir"]},
]
""",
)
TUNING = (
    HEAD
    + """
capacities = ["12"]
validation = "last:1"
offline = false
seeds = [100, 101]
learners = [{name = "tinyer", sweep = {lr = [0.003, 0.03], clip = ["none", 1.0]}}, "ncm"]
"""
)


@pytest.fixture(autouse=True)
def toy_modules(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.syspath_prepend(root / "tests" / "toy")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Store:
    """All workers of a session share it: whoever comes first makes it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    kept = Store(folder / "report-store" / "results")
    with filelock.FileLock(folder / "report-store.lock"), pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root / "tests" / "toy")
        patch.setenv("VERSE_CACHE", str(folder / "report-store" / "cache"))
        patch.setattr("verse.experiments.reference.STEPS", 50)  # points are learned at once
        shared: dict[tuple[object, ...], Prepared] = {}
        for text in (TABLE, *ABLATIONS, TUNING):
            for run in parse(text, "toy", ALLOW).runs:
                if not kept.has(run):
                    ready = shared.setdefault(preparation_key(run), prepare(run))
                    kept.add(encode(execute(run, prepared=ready)))
    return kept


@pytest.fixture
def table_recipe() -> str:
    return TABLE


@pytest.fixture
def tuning_recipe() -> str:
    return TUNING
