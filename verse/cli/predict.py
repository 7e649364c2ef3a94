"""``verse predict``: ask a durable classifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from verse.cli.directory import device_option, threads_option, weights_option
from verse.cli.films import check_times, format_span, time_line, video_options
from verse.cli.output import (
    console,
    format_error,
    json_option,
    print_json,
    print_table,
    result_only,
)
from verse.types import BadData, BadImage, Label


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("images", nargs=-1, required=True, metavar="IMAGE|FOLDER|VIDEO...")
@click.option(
    "--top",
    default=3,
    show_default=True,
    type=click.IntRange(1),
    help="Number of classes to show for each image.",
)
@video_options(every=0.5)
@click.option(
    "--ask",
    "correct",
    is_flag=True,
    help="Ask you for the correct label of each image, and teach it.",
)
@weights_option
@device_option
@threads_option
@json_option
def command(
    directory: Path,
    images: tuple[str, ...],
    top: int,
    every: float,
    seconds: float | None,
    correct: bool,
    weights: str | None,
    device: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Classify images, folders and videos.

    A folder is searched for images at any depth. If its subfolders have the names of classes, the
    command also counts how many answers are correct. A video is a video file, camera:0 or rtsp://…;
    the command shows what it sees from when to when. For a camera, press Ctrl-C to stop.

    You can use the command while the classifier is served or taught. Unreadable images are reported
    and skipped, and the exit code is then 2.

    With --ask you are asked for the correct label of each image: press Enter to confirm the answer,
    or type another label. The classifier learns it. Without a terminal --ask has no effect.
    """
    with result_only(as_json):
        from verse.cli.correct import has_terminal, teach_right_label
        from verse.cli.directory import open_directory

        check_times(images, seconds, as_json)
        correct = correct and has_terminal()
        options = {"weights": weights} if weights else {}
        with open_directory(
            directory, threads, device=device, readonly=not correct, options=options
        ) as classifier:
            asked = [each for name in images for each in inside(name, classifier.classes)]
            rows = []
            for name, expected in asked:
                for row in answers(classifier, name, every, seconds, as_json):
                    more = {} if expected is None else {"expected": expected}
                    taught = teach_right_label(classifier, row) if correct else None
                    rows.append(row | more | ({"taught": taught} if taught is not None else {}))
    if as_json:
        print_json(rows)
    else:
        show_answers(rows, top)
        show_right(rows)
    bad = [row for row in rows if "error" in row]
    for row in bad if not as_json else []:
        console().print(
            format_error(row["image"], row["error"]), style="yellow", markup=False, soft_wrap=True
        )
    if bad:
        raise click.exceptions.Exit(2)


def inside(name: str, classes: Sequence[Label]) -> list[tuple[str, Label | None]]:
    """(image or video, its label if its folder is named after a class) of one argument."""
    from verse.video import is_live

    if is_live(name) or not Path(name).is_dir():
        return [(name, None)]
    from verse.datasets.files import FILMS, images, visible

    def below(place: Path) -> list[Path]:
        folders, files = visible(place)
        shown = [*images(files), *(file for file in files if file.suffix.lower() in FILMS)]
        return shown + [path for inner in folders for path in below(inner)]

    found = below(Path(name))
    if not found:
        raise BadData(f"{name} has no images")
    labels = {str(label): label for label in classes}
    return [
        (
            str(path),
            labels.get(path.relative_to(name).parts[0])
            if path.parent != Path(name)
            else labels.get(Path(name).name),
        )
        for path in found
    ]


def answers(
    classifier: Any, image: str, every: float, seconds: float | None, quiet: bool
) -> list[dict[str, Any]]:
    """The document of an image or video."""
    from verse.video import is_live, is_video

    try:
        if is_video(image):
            live = is_live(image) and not quiet
            return [time_line(classifier, image, every, seconds, live=live)]
        answer = classifier.ask(image)
    except (BadImage, BadData) as error:
        return [{"image": image, "error": str(error)}]
    p = sorted(answer.probabilities.items(), key=lambda item: -item[1])
    return [
        {
            "image": image,
            "label": answer.label,
            "nearest": answer.nearest,
            "known": answer.known,
            "novelty": answer.novelty,
            "confidence": answer.confidence,
            "probabilities": [{"label": label, "p": value} for label, value in p],
            "step": answer.step,
        }
    ]


def show_right(rows: list[dict[str, Any]]) -> None:
    """How many answers agree with the names of the folders, and which do not."""
    known = [row for row in rows if "expected" in row and "nearest" in row]
    if not known:
        return
    wrong = Counter(
        (row["expected"], row["nearest"]) for row in known if row["nearest"] != row["expected"]
    )
    right = len(known) - wrong.total()
    new = sum(not row["known"] for row in known)
    click.echo(
        f"\n{right:,} of {len(known):,} correct according to the folder names, "
        f"{right / len(known):.1%}" + (f"; {new:,} of them called something new" if new else "")
    )
    for (expected, answer), times in wrong.most_common(10):
        click.echo(f"  {expected} mistaken for {answer}: {times:,}")


def show_answers(rows: list[dict[str, Any]], top: int) -> None:
    """One table of the images, and one for each video."""
    from verse.video import is_live

    if images := [format_row(row, top) for row in rows if "spans" not in row]:
        print_table(images)
    for row in rows:
        if "spans" in row and not is_live(row["image"]):
            click.echo(row["image"])
            print_table([format_span(span) for span in row["spans"]])


def format_row(row: dict[str, Any], top: int) -> dict[str, object]:
    """A row for people."""
    if "error" in row:
        return {"image": row["image"], "label": "unreadable", "confidence": "", "next": ""}
    others = ", ".join(f"{s['label']} {s['p']:.1%}" for s in row["probabilities"][1:top])
    if row["nearest"] is None:
        label = "nothing learned yet"
    else:
        label = row["label"] if row["known"] else f"something new (nearest: {row['nearest']})"
    return {
        "image": row["image"],
        "label": label,
        "confidence": f"{row['confidence']:.1%}",
        "next": others,
    }
