"""``verse import``: a new durable classifier that goes on from a teachable file."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.output import json_option, plain_warnings, plural, print_json, result_only


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--weights", help="A file of pretrained weights, if it is elsewhere on this machine.")
@json_option
def command(file: Path, directory: Path, weights: str | None, as_json: bool) -> None:
    """Begin a new directory with what a teachable file knows.

    The file is one that verse export --teachable, verse merge or StreamClassifier.save wrote, on
    any machine. Go on with verse teach, verse serve or verse watch.
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
