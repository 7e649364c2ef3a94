"""``verse compare``: what it prints, what it refuses, and being killed or interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from verse.cli import main
from verse.experiments import execute
from verse.experiments.store import Store

HEAD = """
title = "points"
datasets = ["verse_toy.load"]
backbones = ["verse_toy.flat"]
capacities = ["20"]
"""
SLOW = (
    HEAD
    + """
offline = false
options = {frames = 40}
seeds = 2
learners = ["verse_toy.Slow"]
"""
)


@pytest.fixture(autouse=True)
def _toy(points: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(root / "tests" / "toy"))
    monkeypatch.chdir(tmp_path)


CODE = ("verse_toy.load", "verse_toy.flat", "verse_toy.Slow", "verse_toy_faults.Failing")
ALLOW = [word for name in CODE for word in ("--allow", name)]


def recipe(text: str) -> str:
    Path("recipe.toml").write_text(text)
    return "recipe.toml"


def call(*args: str) -> Result:
    return CliRunner().invoke(main, ["compare", *args, *ALLOW], catch_exceptions=False)


def started() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "verse.cli", "compare", "recipe.toml", "--jobs", "2", *ALLOW]
    return subprocess.Popen(
        command,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # whoever runs the tests in the background may have made children ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def saved(least: int) -> list[Path]:
    """Wait until so many runs have a checkpoint."""
    for _ in range(2400):  # a busy machine takes its time
        files = list(Path("results/.partial").glob("*.checkpoint"))
        if len(files) >= least:
            return files
        time.sleep(0.1)
    raise AssertionError("no checkpoints after four minutes")


def test_a_failing_run_is_reported_at_the_end_and_the_rest_goes_on() -> None:
    text = HEAD + 'offline = false\nlearners = ["verse_toy_faults.Failing", "verse", "ncm"]\n'
    first = call(recipe(text), "--jobs", "1")
    assert first.exit_code == 1
    assert "3 runs: 0 already finished, 2 finished now, 1 failed" in first.stdout
    assert "RuntimeError: the tenth sample was too much" in first.stderr
    assert "[2/3]" in first.stderr and " left" in first.stderr
    assert len(Store(Path("results")).ids()) == 2
    again = call("recipe.toml", "--only", "learner=verse,ncm", "--json")
    assert again.exit_code == 0
    found = json.loads(again.stdout)
    assert (found["runs"], found["finished_before"], found["done"]) == (2, 2, [])


def test_runs_that_fail_alike_are_told_once_without_a_traceback() -> None:
    text = HEAD.replace("verse_toy.load", "folder:nowhere")
    text += 'seeds = 6\noffline = false\nlearners = ["ncm"]\n'
    told = call(recipe(text), "--jobs", "1").stderr
    assert "Traceback" not in told
    last = told.rpartition("\nfailed: ")[2]
    assert last.count("nowhere") == 1 and " more\n" in last


def test_what_there_is_to_do() -> None:
    text = (
        HEAD + "offline = false\n"
        'orders = ["iid", "instance"]\nseeds = 3\nlearners = ["verse", "ncm"]\n'
    )
    shown = call(recipe(text), "--dry-run").stdout
    assert shown.startswith("12 runs, 12 of them to do\n")
    assert [line.split() for line in shown.splitlines()[2:4]] == [
        ["verse_toy.load", "verse", "6", "6"],
        ["verse_toy.load", "ncm", "6", "6"],
    ]
    assert "time unknown" in shown
    assert not Path("results").exists()  # looking leaves nothing behind
    some = call("recipe.toml", "--dry-run", "--only", "order=iid", "--only", "seed=0,2", "--json")
    assert json.loads(some.stdout)["missing"] == 4
    some = ("--only", "order=iid", "--only", "seed=0", "--jobs", "1")
    assert call("recipe.toml", *some).exit_code == 0
    assert "estimated from finished runs" in call("recipe.toml", "--dry-run").stdout
    missing = call(recipe('datasets = ["folder:nowhere"]\nlearners = ["ncm"]\n'), "--dry-run")
    assert "the data is missing: folder:nowhere" in missing.stderr


def test_looking_at_rendered_data_draws_nothing(tmp_path: Path) -> None:
    text = 'datasets = [{name = "tabletop", options = {frames = 999}}]\nlearners = ["ncm"]\n'
    assert call(recipe(text), "--dry-run").exit_code == 0
    assert not (tmp_path / "cache").exists()
    wrong = call(recipe(text.replace("999", "-1")), "--dry-run")
    assert "the data is missing: tabletop: frames" in " ".join(wrong.stderr.split())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nowhere.toml",), "there is no recipe nowhere.toml"),
        (("recipe.toml", "--only", "colour=red"), "write FIELD=VALUE"),
        (("recipe.toml", "--only", "seed=99"), "no run of the recipe matches"),
        (("recipe.toml", "--address", "auto"), "--address needs --engine ray"),
    ],
)
def test_bad_input(args: tuple[str, ...], words: str) -> None:
    recipe(HEAD + 'learners = ["verse"]\n')
    result = call(*args)
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_recipe_chooses_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    sound = {"datasets": "tabletop", "learners": "ncm", "backbones": "resnet18"}
    for axis in sound:
        named = sound | {axis: "planted.Thing"}
        text = "".join(f'{name} = ["{value}"]\n' for name, value in named.items())
        for more in (text, text.replace("planted.Thing", sound[axis]) + TUNED):
            result = CliRunner().invoke(main, ["compare", recipe(more), "--dry-run"])
            assert result.exit_code == 2 and result.stderr.count("planted") >= 1
            assert "--allow planted.Thing" in " ".join(result.stderr.split())
    assert "planted" not in sys.modules


TUNED = '[tuned]\n"planted.Thing" = {r = 1}\n'


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_killed_or_interrupted_it_goes_on_from_checkpoints(
    end: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe(SLOW)
    monkeypatch.setenv("VERSE_TOY_STEP", "0.05")  # it cannot be finished before it is stopped
    process = started()
    try:
        files = saved(1)
    finally:
        process.send_signal(end)
    _, err = process.communicate(timeout=120)
    assert process.returncode == (130 if end == signal.SIGINT else -end), err
    for _ in range(900):  # workers end by themselves when their parent is gone
        if not workers():
            break
        time.sleep(0.1)
    assert not workers()
    finished = Store(Path("results")).ids()
    assert all(file.stat().st_size for file in files)
    assert len(finished) < 2
    monkeypatch.setenv("VERSE_TOY_STEP", "0")  # nobody kills it any more
    done = call("recipe.toml", "--jobs", "1", "--json")
    assert done.exit_code == 0, done.stderr
    assert len(json.loads(done.stdout)["done"]) == 2 - len(finished)
    assert not list(Path("results/.partial").glob("*.checkpoint"))
    # never stopped, in this process: the same numbers
    for result in Store(Path("results")).results():
        other = execute(result.run, threads=1)
        assert [e.by_video for e in result.events] == [e.by_video for e in other.events]


def workers() -> list[str]:
    """Processes that work on this test's folder."""
    here, found = str(Path.cwd()), []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                line = (entry / "cmdline").read_text()
                if "spawn_main" in line and os.readlink(entry / "cwd") == here:
                    found.append(line)
        except OSError:
            continue
    return found
