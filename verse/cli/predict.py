"""``verse predict``: ask a durable classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from verse.cli.output import console, json_option, print_json, print_table, result_only
from verse.types import BadData, BadImage

GROUP = 32  # images computed at once


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("images", nargs=-1, required=True, metavar="IMAGE|VIDEO...")
@click.option("--top", default=3, show_default=True, type=click.IntRange(1),
              help="Probabilities shown.")  # fmt: skip
@click.option("--every", default=0.5, show_default=True, type=click.FloatRange(0),
              help="Of a video: seconds between two frames looked at; 0 takes all.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0, min_open=True),
              help="Of a video: stop after so long.")  # fmt: skip
@click.option("--weights", help="A file of pretrained weights, if it has moved.")
@click.option("--threads", type=click.IntRange(1), help="[default: half the cores]")
@json_option
def command(
    directory: Path,
    images: tuple[str, ...],
    top: int,
    every: float,
    seconds: float | None,
    weights: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Ask a durable classifier about images and videos.

    Of a video (a film file, camera:0, or rtsp://…) it tells what is seen from when to when; of a
    camera until --seconds have passed or you interrupt it. The classifier may be served or taught
    at the same time. An image that cannot be read is told and passed over; the exit code is then 2.
    """
    with result_only(as_json):
        from verse.cli.directory import open_directory
        from verse.cli.films import check_times

        check_times(images, seconds, as_json)
        options = {"weights": weights} if weights else {}
        with open_directory(directory, threads, readonly=True, options=options) as classifier:
            rows = [row for i in range(0, len(images), GROUP)
                    for row in answers(classifier, images[i : i + GROUP], every, seconds, as_json)
                    ]  # fmt: skip
    if as_json:
        print_json(rows)
    else:
        show(rows, top)
    bad = [row for row in rows if "error" in row]
    for row in bad if not as_json else []:
        console().print(
            f"{row['image']}: {row['error']}", style="yellow", markup=False, soft_wrap=True
        )
    if bad:
        raise click.exceptions.Exit(2)


def answers(
    classifier: Any, images: tuple[str, ...], every: float, seconds: float | None, quiet: bool
) -> list[dict[str, Any]]:
    """One document for each image or video."""
    from verse.cli.films import time_line
    from verse.video import is_live, is_video

    rows: list[dict[str, Any]] = []
    for image in images:
        try:
            if is_video(image):
                live = is_live(image) and not quiet
                rows.append(time_line(classifier, image, every, seconds, live=live))
                continue
            answer = classifier.predict(image)
        except (BadImage, BadData) as error:
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


def show(rows: list[dict[str, Any]], top: int) -> None:
    """One table of the images, and one for each video."""
    from verse.cli import films
    from verse.video import is_live

    if images := [shown(row, top) for row in rows if "spans" not in row]:
        print_table(images)
    for row in rows:
        if "spans" in row and not is_live(row["image"]):
            click.echo(row["image"])
            print_table([films.shown(span) for span in row["spans"]])


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
