"""``verse test``: how good is a classifier on images whose classes are known?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.directory import open_directory, threads_option, weights_option
from verse.cli.output import console, json_option, plural, print_json, print_table, result_only
from verse.extras import OptionalImport
from verse.types import BadData, BadImage

if TYPE_CHECKING:
    from verse.durable import DurableClassifier

UNKNOWN = "unknown"


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the confusion matrix as a picture (.png, .svg).",
)
@weights_option
@threads_option
@json_option
def command(
    directory: Path,
    folder: Path,
    plot: Path | None,
    weights: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Measure a classifier's accuracy on a folder of labelled images.

    FOLDER has one subfolder of images per class. The command shows the accuracy in total and per
    class, which classes are confused, and how many images are called unknown. For a class that was
    never taught, "unknown" is the correct answer. Nothing is learned.
    """
    with result_only(as_json):
        options = {"weights": weights} if weights else {}
        with open_directory(directory, threads, readonly=True, options=options) as classifier:
            result = examine(classifier, folder)
    if plot is not None and result["images"]:
        draw(result, plot)
    if as_json:
        print_json(result)
    else:
        show_test(result)
        if plot is not None and result["images"]:
            click.echo(f"wrote {plot}")
    if not result["images"]:  # nothing could be read
        click.get_current_context().exit(2)


def examine(classifier: DurableClassifier, folder: Path) -> dict[str, Any]:
    """Ask about every image; ``confusion`` counts (class, answer) with the likeliest label."""
    from rich.progress import track

    from verse.cli.teach import classes_of

    classes = {str(label) for label in classifier.classes}
    images = [(label, path) for label, paths in classes_of(folder).items() for path in paths]
    if not images:
        raise BadData(f"{folder} has no images: it needs one subfolder of images per class")
    confusion: Counter[tuple[str, str]] = Counter()
    right: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    bad = []
    shown = console()
    for label, path in track(images, "Testing", console=shown, disable=not shown.is_terminal):
        try:
            answer = classifier.ask(path)
        except BadImage as error:
            bad.append({"image": str(path), "error": str(error)})
            continue
        nearest = str(answer.nearest)
        seen[label] += 1
        refused[label] += not answer.known
        right[label] += nearest == label
        confusion[label, nearest] += 1
    return _sum_up(classes, confusion, right, seen, refused, bad)


def _sum_up(
    classes: set[str],
    confusion: Counter[tuple[str, str]],
    right: Counter[str],
    seen: Counter[str],
    refused: Counter[str],
    bad: list[dict[str, str]],
) -> dict[str, Any]:
    taught = [label for label in seen if label in classes]
    new = [label for label in seen if label not in classes]
    known, other = sum(seen[label] for label in taught), sum(seen[label] for label in new)
    return {
        "images": known + other,
        "accuracy": sum(right[label] for label in taught) / known if known else None,
        "per_class": {
            label: {
                "images": seen[label],
                "accuracy": right[label] / seen[label] if label in classes else None,
                "unknown": refused[label] / seen[label],
            }
            for label in seen
        },
        "confusion": [
            {"label": label, "answer": answer, "images": n}
            for (label, answer), n in sorted(confusion.items())
        ],
        "unknown": {
            "known_refused": sum(refused[label] for label in taught) / known if known else None,
            "new_refused": sum(refused[label] for label in new) / other if other else None,
        },
        "unreadable": bad,
    }


def show_test(result: dict[str, Any]) -> None:
    """The result for people."""
    wrong: dict[str, Counter[str]] = {}
    for row in result["confusion"]:
        if row["label"] != row["answer"]:
            wrong.setdefault(row["label"], Counter())[row["answer"]] = row["images"]
    print_table(
        [
            {
                "class": label,
                "images": row["images"],
                "correct": "never taught" if row["accuracy"] is None else f"{row['accuracy']:.0%}",
                "unknown": f"{row['unknown']:.0%}",
                "mistaken for": ", ".join(
                    f"{name} {n}" for name, n in wrong.get(label, Counter()).most_common(3)
                ),
            }
            for label, row in result["per_class"].items()
        ]
    )
    if result["accuracy"] is not None:
        new = sum(r["images"] for r in result["per_class"].values() if r["accuracy"] is None)
        click.echo(
            f"\n{result['accuracy']:.1%} of {plural(result['images'] - new, 'image')} of taught "
            f"classes are nearest to their class; {result['unknown']['known_refused']:.1%} of them "
            "are called unknown"
        )
    if result["unknown"]["new_refused"] is not None:
        click.echo(
            f"{result['unknown']['new_refused']:.1%} of the images of classes never taught are "
            "called unknown, as they should be"
        )
    for row in result["unreadable"]:
        console().print(row["error"], style="yellow", markup=False, soft_wrap=True)


def draw(result: dict[str, Any], path: Path) -> None:
    """The confusion matrix as a picture: rows are classes, columns answers."""
    with OptionalImport():
        from matplotlib.figure import Figure

    rows = list(result["per_class"])
    columns = sorted({row["answer"] for row in result["confusion"]})
    shares = [[0.0] * len(columns) for _ in rows]
    for row in result["confusion"]:
        images = result["per_class"][row["label"]]["images"]
        shares[rows.index(row["label"])][columns.index(row["answer"])] = row["images"] / images
    side = 2.5 + 0.35 * max(len(rows), len(columns))
    figure = Figure(figsize=(side, side), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlabel("answer")
    axes.set_ylabel("class")
    figure.colorbar(image, ax=axes, label="share of the class", shrink=0.8)
    if len(rows) <= 15:
        for i, line in enumerate(shares):
            for j, value in enumerate(line):
                if value >= 0.005:
                    colour = "white" if value > 0.5 else "black"
                    axes.text(j, i, f"{value:.0%}", ha="center", va="center", color=colour)
    figure.savefig(path, dpi=120)
