"""``verse classes``: what a durable classifier knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.directory import open_directory, weights_option
from verse.cli.output import json_option, plural, print_json, print_table, result_only

if TYPE_CHECKING:
    from verse.durable import DurableClassifier


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@weights_option
@json_option
def command(directory: Path, weights: str | None, as_json: bool) -> None:
    """Show the classes of a classifier.

    For each class: how many images you taught, and how many samples are in the memory. You can use
    the command while the classifier is served or taught.
    """
    with result_only(as_json):
        options = {"weights": weights} if weights else {}
        with open_directory(directory, None, readonly=True, options=options) as classifier:
            found = describe_classes(classifier)
    if as_json:
        print_json({"directory": directory, **found})
        return
    print_table(found["classes"] or [{"class": "none yet", "taught": 0, "remembered": 0}])
    memory = plural(found["remembered"], "sample")
    click.echo(
        f"\n{plural(len(found['classes']), 'class', 'classes')}, "
        f"{plural(found['samples'], 'sample')} learned, {memory} remembered "
        f"({found['memory_bytes'] / 1e6:.2f} MB); learner {found['learner']}, "
        f"backbone {found['backbone']} at {found['at']}"
    )


def describe_classes(classifier: DurableClassifier) -> dict[str, Any]:
    """The document that ``--json`` prints."""
    memory, remembered = classifier.learner.memory, classifier.memory_counts()
    rows = [
        {
            "class": label,
            "taught": classifier.taught.get(label, 0),
            "remembered": remembered.get(label, 0),
        }
        for label in classifier.classes
    ]
    return {
        "classes": rows,
        "samples": classifier.samples,
        "remembered": sum(remembered.values()),
        "memory_bytes": len(memory) * memory.item_bytes if memory is not None else 0,
        "learner": classifier.learner.name,
        "settings": classifier.learner.settings(),
        "backbone": classifier.backbone.name,
        "at": classifier.backbone.at,
    }
