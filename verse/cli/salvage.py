"""``verse salvage``: a durable classifier from what remains of its directory."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.directory import refuse_locked
from verse.cli.output import json_option, plural, print_json


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Recover a classifier whose journal is lost from its newest valid checkpoint.

    If you have a backup, restore that instead: it contains more. Nothing is deleted; unusable files
    are moved to a folder inside DIRECTORY.
    """
    from verse.durable.salvage import salvage

    refuse_locked(directory)
    found = salvage(directory)
    if as_json:
        print_json({"position": found.position, "lost": found.lost, "remains": found.remains})
        return
    lost = (
        "everything later"
        if found.lost is None
        else plural(found.lost, "later entry", "later entries")
    )
    click.echo(
        f"{directory} is recovered up to entry {found.position:,}; lost: {lost}; unusable files "
        f"are in {found.remains}"
    )
