"""``verse list``: what there is to choose from, one line each."""

from __future__ import annotations

import importlib

import click

from verse.cli.output import json_option, print_json, print_table, result_only

KINDS = {
    "learners": "verse.learners",
    "datasets": "verse.datasets",
    "backbones": "verse.backbones",
    "memories": "verse.memory",
}


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS)))
@json_option
def command(kind: str, as_json: bool) -> None:
    """List the learners, datasets, backbones or memories there are."""
    with result_only(as_json):
        rows = entries(kind)
    if as_json:
        print_json(rows)
    else:
        print_table(rows)


def entries(kind: str) -> list[dict[str, str]]:
    """Name and first line of the documentation of each member of a kind.

    A folder with members has ``names()`` and ``describe(name)``, its one-line description.
    """
    folder = importlib.import_module(KINDS[kind])
    return [{"name": name, "description": folder.describe(name)} for name in folder.names()]
