"""``verse export``: a durable classifier as one ONNX file."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.output import json_option, print_json, result_only


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--weights", help="A file of pretrained weights, if it has moved.")
@json_option
def command(directory: Path, file: Path, weights: str | None, as_json: bool) -> None:
    """Write a durable classifier to one ONNX file.

    It may be served or taught at the same time. ONNX Runtime runs the file anywhere: its input is
    the centre square of each image, its output one probability for each of the labels inside.
    """
    with result_only(as_json):
        from verse.cli.directory import open_directory

        options = {"weights": weights} if weights else {}
        with open_directory(directory, None, readonly=True, options=options) as classifier:
            classifier.export(file)
            labels, samples = classifier.classes, classifier.samples
    if as_json:
        result = {"file": file, "bytes": file.stat().st_size, "labels": labels, "samples": samples}
        print_json(result)
    else:
        click.echo(f"{file}: {len(labels)} classes after {samples} samples")
