"""``verse salvage``: a durable classifier from what remains of its directory."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.output import json_option, plural, print_json


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Go on from the newest sound checkpoint of a classifier whose journal is lost.

    Nothing is deleted: what cannot be used is moved to a folder inside DIRECTORY. A backup, where
    there is one, holds more.
    """
    from verse.durable.salvage import salvage

    found = salvage(directory)
    if as_json:
        print_json({"position": found.position, "lost": found.lost, "remains": found.remains})
        return
    lost = "what came after it" if found.lost is None else plural(found.lost, "entry", "entries")
    click.echo(
        f"{directory} goes on after entry {found.position:,}; lost: {lost}; the rest is in "
        f"{found.remains}"
    )
