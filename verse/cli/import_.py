"""``verse import``: a new durable classifier from a teachable file."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.directory import weights_option
from verse.cli.output import json_option, plain_warnings, plural, print_json, result_only


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("directory", type=click.Path(path_type=Path))
@weights_option
@json_option
def command(file: Path, directory: Path, weights: str | None, as_json: bool) -> None:
    """Create a classifier from a file written by verse export --teachable.

    FILE can come from another machine, and also from verse merge or StreamClassifier.save.
    DIRECTORY must be new. Continue with verse teach, verse serve or verse watch.
    """
    with result_only(as_json):
        from verse.durable import begin

        with plain_warnings():
            classifier = begin(directory, file, weights=weights)
    if as_json:
        found = {"labels": classifier.classes, "samples": classifier.samples}
        print_json({"directory": directory, **found})
    else:
        classes = plural(len(classifier.classes), "class", "classes")
        click.echo(f"{directory}: {classes} after {plural(classifier.samples, 'sample')}")
