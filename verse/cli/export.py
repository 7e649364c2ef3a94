"""``verse export``: a durable classifier as one file, to run or to go on teaching."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.directory import weights_option
from verse.cli.output import json_option, print_json, result_only


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--teachable",
    is_flag=True,
    help="Write a file that can be taught further (see verse import and verse merge).",
)
@weights_option
@json_option
def command(
    directory: Path, file: Path, teachable: bool, weights: str | None, as_json: bool
) -> None:
    """Export a classifier as an ONNX file or as a file that can be taught further.

    You can run the ONNX file with ONNX Runtime. Its input is the centre square of each image. Its
    output is one probability per class; the labels are in the file. You can use the command while
    the classifier is served or taught.
    """
    with result_only(as_json):
        from verse.cli.directory import open_directory

        options = {"weights": weights} if weights else {}
        with open_directory(directory, None, readonly=True, options=options) as classifier:
            (classifier.save if teachable else classifier.export)(file)
            labels, samples = classifier.classes, classifier.samples
    if as_json:
        size, form = file.stat().st_size, "teachable" if teachable else "onnx"
        result = {"file": file, "form": form, "bytes": size, "labels": labels, "samples": samples}
        print_json(result)
    else:
        click.echo(f"{file}: {len(labels)} classes after {samples} samples")
