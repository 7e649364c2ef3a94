"""``verse report``: JSON, the folder it writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from verse.cli import main

RECIPE = """
title = "Points"
datasets = ["verse_toy.load"]
backbones = ["verse_toy.flat"]
options = {videos = 4, frames = 3}
capacities = ["12"]
"""


@pytest.fixture(autouse=True)
def _toy(points: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def call(*args: str) -> Result:
    if args[0] == "compare" or "--tuning" in args:
        args += ("--allow", "verse_toy.load", "--allow", "verse_toy.flat")
    return CliRunner().invoke(main, list(args), catch_exceptions=False)


def test_from_recipe_to_report_and_tuned_settings() -> None:
    Path("table.toml").write_text(RECIPE + 'learners = ["verse", "ncm"]\nseeds = 2\n')
    Path("tuning.toml").write_text(
        RECIPE + 'validation = "last:1"\noffline = false\nseeds = [100]\n'
        'learners = [{name = "tinyer", sweep = {lr = [0.003, 0.03]}}]\n'
    )
    assert call("compare", "table.toml", "tuning.toml", "--jobs", "1").exit_code == 0
    found = json.loads(call("report", "results", "--json").stdout)
    assert [cell["learner"] for cell in found["omega_all"]] == ["verse", "ncm"]
    cell = found["omega_all"][0]
    assert (cell["dataset"], cell["order"], cell["n"]) == ("verse_toy.load", "class-instance", 2)
    assert cell["low"] <= cell["mean"] <= cell["high"]
    assert cell["mu_low"] <= cell["mu_all"] <= cell["mu_high"] and cell["reference"]
    assert "claims" not in found  # nobody reran the paper
    assert not Path("results/report").exists()  # JSON alone writes nothing
    assert "6 runs: see results/report/index.html" in call("report").stdout
    assert Path("results/report/index.md").read_text().startswith("# Points\n")
    assert not Path("docs").exists()
    chosen = call("report", "results", "--tuning", "tuning.toml")
    assert "[tuned]\ntinyer = {lr = 0.0" in chosen.stdout
    # runs on validation videos may lie in a folder of their own, and nobody else may
    trials = Path("results/verse_toy.load/tinyer.jsonl")
    apart = Path("results/tuning/verse_toy.load")
    apart.mkdir(parents=True)
    shutil.copy("results/verse_toy.load/shared.jsonl", apart)
    trials.rename(apart / trials.name)
    assert call("report", "results", "--tuning", "tuning.toml").stdout == chosen.stdout
    assert json.loads(call("report", "results", "--json").stdout) == found
    shutil.copy("results/verse_toy.load/ncm.jsonl", apart)
    mixed = call("report", "results")
    assert mixed.exit_code == 2 and "validation videos only" in mixed.stderr
    (apart / "ncm.jsonl").unlink()
    table = call("report", "--tuning", "table.toml")
    assert table.exit_code == 2 and "validation videos" in table.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [(("nowhere",), "there is no folder nowhere"), ((".",), "contains no finished runs")],
)
def test_nothing_to_report(args: tuple[str, ...], words: str) -> None:
    result = call("report", *args)
    assert result.exit_code == 2
    assert words in result.stderr


def test_what_verse_run_kept_is_reported() -> None:
    args = ("--backbone", "verse_toy.flat", "--learner", "ncm", "--no-offline")
    assert call("run", "verse_toy.load", *args).exit_code == 0
    assert call("report", "runs").stdout.startswith("1 run: see runs/report/index.html")
    page = Path("runs/report/index.md").read_text()
    assert "| `ncm` | 0." in page and "Ω" not in page
