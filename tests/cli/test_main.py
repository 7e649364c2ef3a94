"""The group itself: what it lists, how it finds commands, and its exit codes."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from verse.cli import COMMANDS, main
from verse.cli.lazy import LazyGroup
from verse.extras import EXTRAS

LINE = "Do something."
BODIES = {
    "fine": "click.echo('done')",
    "bad": "raise BadSetting('no learner of that name; see verse list learners')",
    "stopped": "raise KeyboardInterrupt",
    "nofile": "open('/no/such/file')",
    "broken": "raise RuntimeError('a fault of the program')",
    "noextra": "raise ModuleNotFoundError(\"No module named 'fastapi'\", name='fastapi')",
}


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LazyGroup:
    """A group of small commands, each in a file of its own."""
    package = f"commands_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / package
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, body in BODIES.items():
        (folder / f"{name}.py").write_text(
            "import click\nfrom verse.types import BadSetting\n"
            f"@click.command()\ndef command():\n    {body}\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return LazyGroup("toy", package=package, table=dict.fromkeys([*BODIES, "absent"], LINE))


def call(group: click.Group, *args: str) -> Result:
    return CliRunner().invoke(group, list(args))


def test_help_lists_every_command_and_imports_none(group: LazyGroup) -> None:
    result = call(group, "--help")
    assert result.exit_code == 0
    assert all(name in result.output for name in BODIES)
    assert result.output.count(LINE) == len(BODIES)


def test_a_command_runs(group: LazyGroup) -> None:
    result = call(group, "fine")
    assert (result.exit_code, result.stdout) == (0, "done\n")


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("bad", 2, "no learner of that name; see verse list learners"),
        ("nofile", 2, "/no/such/file: No such file or directory"),
        ("noextra", 2, "pip install 'verse-stream[serve]'"),
        ("stopped", 130, "Everything so far is saved"),
        ("finne", 2, "did you mean 'fine'?"),
        ("zzz", 2, "there are: fine"),
    ],
)
def test_errors_have_exit_codes_and_say_what_to_do(
    group: LazyGroup, name: str, code: int, message: str
) -> None:
    result = call(group, name)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""


def test_a_fault_of_the_program_keeps_its_traceback(group: LazyGroup) -> None:
    result = call(group, "broken")
    assert result.exit_code == 1
    assert isinstance(result.exception, RuntimeError)


def test_debug_shows_the_error_behind_a_message(
    group: LazyGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERSE_DEBUG", "1")
    assert isinstance(call(group, "bad").exception, ValueError)


def test_the_overview_says_what_each_command_says() -> None:
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        assert command.help is not None, f"{name} has no help"
        assert inspect.cleandoc(command.help).splitlines()[0] == COMMANDS[name]


def test_every_command_file_is_in_the_overview(root: Path) -> None:
    files = {
        path.stem.rstrip("_")  # import_.py
        for path in (root / "verse" / "cli").glob("*.py")
        if "\ndef command(" in path.read_text()
    }
    assert files <= set(COMMANDS)


def test_the_table_of_extras_is_the_projects(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    declared = {
        extra: {requirement.partition(">")[0] for requirement in requirements}
        for extra, requirements in project["optional-dependencies"].items()
        if extra not in ("all", "dev", "docs")
    }
    assert {extra: set(packages.values()) for extra, packages in EXTRAS.items()} == declared
