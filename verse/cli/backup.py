"""``verse backup``: a durable classifier in one file."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.output import json_option, plural, print_json


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_option
def command(directory: Path, file: Path, as_json: bool) -> None:
    """Copy a classifier to a single backup file.

    You can use the command while the classifier is served or taught. See verse restore.
    """
    from verse.durable import backup

    manifest = backup(directory, file)
    if as_json:
        print_json({"file": file, **manifest})
    else:
        click.echo(
            f"{file}: {manifest['bytes'] / 2**20:.1f} MiB, {plural(len(manifest['files']), 'file')}"
        )
