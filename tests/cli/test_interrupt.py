"""Ctrl-C while modules load: never lost, always exit code 130."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PRESS = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
LOOP = "for _ in range(99): pass"  # Python looks for signals when it jumps back

# what an import may do with an error that is raised in the middle of it
IMPORTS = {
    "passes it on": f"{PRESS}",
    "drops it": f"""
        try:
            {PRESS}
        except BaseException:
            pass
    """,
    "makes another error of it": f"""
        try:
            {PRESS}
        except BaseException:
            raise ImportError("no such module")
    """,
    "runs a text": f"exec({PRESS + chr(10) + LOOP!r})",
}


def command(folder: Path, module: str, then: str | None = None) -> subprocess.CompletedProcess[str]:
    """A program of one command, whose module is this."""
    (folder / "program").mkdir()
    (folder / "program" / "__init__.py").touch()
    (folder / "program" / "slow.py").write_text(
        textwrap.dedent(module) + (COMMAND if then is None else then)
    )
    (folder / "main.py").write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-m", "main"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        # a runner in the background of a shell ignores Ctrl-C, and so would its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


PROGRAM = """
from verse.cli.lazy import LazyGroup
LazyGroup("program", package="program", table={"slow": "A command."}).main(["slow"])
"""
COMMAND = """
import time
import click

@click.command()
def command():
    for _ in range(1000):
        time.sleep(0.01)
    print("lost")
"""


@pytest.mark.parametrize("what", IMPORTS)
def test_ctrl_c_inside_an_import_is_never_lost(tmp_path: Path, what: str) -> None:
    ended = command(tmp_path, IMPORTS[what])
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "Interrupted. Everything so far is saved.\n"


def test_it_does_not_wait_for_an_import_before_anything_has_begun(tmp_path: Path) -> None:
    ended = command(tmp_path, f"{PRESS}\n{LOOP}\nprint('went on')\n")
    assert (ended.returncode, ended.stdout) == (130, "")


AT_WORK = """
import time
import click

@click.command()
def command():
    try:
        import inside
        for _ in range(1000):
            time.sleep(0.01)
    finally:
        print("put away")
"""


@pytest.mark.parametrize("times", [1, 2])
def test_at_work_it_waits_for_the_import_unless_pressed_again(tmp_path: Path, times: int) -> None:
    (tmp_path / "inside.py").write_text(f"{PRESS}\n{LOOP}\n" * times + "print('went on')\n")
    ended = command(tmp_path, AT_WORK, "")
    assert ended.returncode == 130 and ended.stderr == "Interrupted. Everything so far is saved.\n"
    assert ended.stdout == ("went on\nput away\n" if times == 1 else "")


def test_where_it_is_ignored_it_stays_so(tmp_path: Path) -> None:
    program = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{PROGRAM}"
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "slow.py").write_text(f"{PRESS}\n{COMMAND.replace('1000', '1')}")
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (ended.returncode, ended.stdout) == (0, "lost\n")
