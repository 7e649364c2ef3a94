"""``verse restore``: a durable classifier from its backup."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.output import json_option, print_json


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def command(file: Path, directory: Path, as_json: bool) -> None:
    """Restore a backup into a new directory."""
    from verse.durable import restore

    manifest = restore(file, directory)
    if as_json:
        print_json({"directory": directory, **manifest})
    else:
        click.echo(f"{directory}: restored from {file}")
