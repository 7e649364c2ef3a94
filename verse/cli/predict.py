"""``verse predict``: ask a durable classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from verse.cli.output import console, json_option, print_json, print_table, result_only
from verse.types import BadImage

GROUP = 32  # images computed at once


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("images", nargs=-1, required=True, metavar="IMAGE...")
@click.option("--top", default=3, show_default=True, type=click.IntRange(1),
              help="Probabilities shown.")  # fmt: skip
@click.option("--weights", help="A file of pretrained weights, if it has moved.")
@click.option("--threads", type=click.IntRange(1), help="[default: half the cores]")
@json_option
def command(
    directory: Path,
    images: tuple[str, ...],
    top: int,
    weights: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Ask a durable classifier about images.

    It may be served or taught at the same time. An image that cannot be read is told and passed
    over; the exit code is then 2.
    """
    with result_only(as_json):
        from verse.cli.directory import open_directory

        options = {"weights": weights} if weights else {}
        with open_directory(directory, threads, readonly=True, options=options) as classifier:
            rows = [row for i in range(0, len(images), GROUP)
                    for row in answers(classifier, images[i : i + GROUP])]  # fmt: skip
    if as_json:
        print_json(rows)
    else:
        print_table([shown(row, top) for row in rows])
    bad = [row for row in rows if "error" in row]
    for row in bad if not as_json else []:
        console().print(f"{row['image']}: {row['error']}", style="yellow", markup=False)
    if bad:
        raise click.exceptions.Exit(2)


def answers(classifier: Any, images: tuple[str, ...]) -> list[dict[str, Any]]:
    """One document for each image."""
    rows: list[dict[str, Any]] = []
    for image in images:
        try:
            answer = classifier.predict(image)
        except BadImage as error:
            rows.append({"image": image, "error": str(error)})
            continue
        p = sorted(answer.probabilities.items(), key=lambda item: -item[1])
        rows.append(
            {
                "image": image,
                "label": answer.label,
                "confidence": answer.confidence,
                "probabilities": [{"label": label, "p": value} for label, value in p],
                "step": answer.step,
            }
        )
    return rows


def shown(row: dict[str, Any], top: int) -> dict[str, object]:
    """A row for people."""
    if "error" in row:
        return {"image": row["image"], "label": "unreadable", "confidence": "", "next": ""}
    others = ", ".join(f"{s['label']} {s['p']:.1%}" for s in row["probabilities"][1:top])
    label = "nothing learned yet" if row["label"] is None else row["label"]
    return {
        "image": row["image"],
        "label": label,
        "confidence": f"{row['confidence']:.1%}",
        "next": others,
    }
