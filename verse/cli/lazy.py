"""A click group whose commands are imported when they are called, and not before."""

from __future__ import annotations

import importlib
import importlib.util
import keyword
from collections.abc import Mapping
from typing import Any

import click

from verse.cli.errors import exit_codes
from verse.cli.interrupt import exit_on_interrupt, late_interrupts
from verse.suggestions import suggest


class LazyGroup(click.Group):
    """Find the command NAME in the module ``package.NAME``, where it is called ``command``.

    >>> group = LazyGroup("verse", package="verse.cli", table={"info": "Show versions."})
    >>> group.list_commands(click.Context(group))
    ['info']
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        package: str,
        table: Mapping[str, str],
        **settings: Any,  # click builds a group from its own decorator's keywords
    ) -> None:
        super().__init__(name, **settings)
        self.package = package
        self.table = {
            name: line
            for name, line in table.items()
            if importlib.util.find_spec(f"{package}.{_module(name)}") is not None
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in self.table:
            return None
        module = f"{self.package}.{_module(cmd_name)}"
        with exit_on_interrupt():
            command = importlib.import_module(module).command
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}.command is not a click command")
        command.name = cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, and name the nearest command when there is no such one."""
        if args and args[0] not in self.table and not args[0].startswith("-"):
            ctx.fail(f"no command '{args[0]}'; {suggest(args[0], self.table)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the table's lines, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.table.items()))

    def main(self, *args: Any, **settings: Any) -> Any:  # click's own parameters, passed on
        """As click does; Ctrl-C never gets lost in an import."""
        with late_interrupts():
            return super().main(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and turn what it raises into the exit codes of the command line."""
        with exit_codes():
            return super().invoke(ctx)


def _module(name: str) -> str:
    """``import`` is a word of Python's: its file is ``import_.py``."""
    return f"{name}_" if keyword.iskeyword(name) else name
