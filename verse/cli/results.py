"""``verse results``: look after folders of finished runs."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.output import json_option, print_json, result_only

FOLDER = click.Path(path_type=Path)


@click.group()
def command() -> None:
    """Check, repair, convert and join folders of finished runs."""


@command.command()
@click.argument("folder", type=FOLDER, default=Path("results"))
@json_option
def check(folder: Path, as_json: bool) -> None:
    """Check every run in FOLDER. If a line is damaged, the exit code is 2."""
    with result_only(as_json):
        from verse.experiments.store import Store

        store = Store(folder)
        runs = len(store.results())
        facts = {"folder": str(folder), "runs": runs, "digest": store.digest()}
    if as_json:
        print_json(facts)
    else:
        click.echo(f"{runs} {'run' if runs == 1 else 'runs'}, all intact")


@command.command()
@click.argument("folder", type=FOLDER)
def repair(folder: Path) -> None:
    """Move damaged lines of FOLDER to files named NAME.damaged.

    verse compare then repeats those runs.
    """
    from verse.experiments.store import Store

    moved = Store(folder).repair()
    click.echo(f"{moved} damaged {'line' if moved == 1 else 'lines'} moved")


@command.command()
@click.argument("sources", nargs=-1, required=True, type=FOLDER, metavar="OLD...")
@click.argument("target", type=FOLDER, metavar="NEW")
def convert(sources: tuple[Path, ...], target: Path) -> None:
    """Copy all runs from the folders OLD into the folder NEW.

    Use it to join the results of several machines, or to convert results of an earlier version
    (one file per run). Runs that NEW already has are kept. OLD is not changed.
    """
    from verse.experiments.convert import convert_stores as copy

    new = copy(sources, target)
    click.echo(f"{new} {'run' if new == 1 else 'runs'} copied into {target}")
