"""``verse list``: what there is to choose from, one line each."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable

import click

from verse.cli.output import json_option, print_json, print_table, result_only


def learners() -> dict[str, str]:
    """Learner → the first line of its documentation."""
    from verse import learners

    return {name: first_line(learners.get(name)) for name in learners.names()}


def assumptions() -> list[dict[str, object]]:
    """What each learner assumes, as in the paper's table of assumptions; None: does not apply."""
    from verse import learners

    return [
        {"name": name, "type": traits.pop("kind"), **traits}
        for name in learners.names()
        for traits in [learners.get(name).traits.as_dict()]
    ]


def settings() -> dict[str, dict[str, object]]:
    """Learner → its hyper-parameters as JSON schema."""
    from verse import learners

    return {name: {"settings": learners.schema(name)} for name in learners.names()}


def short(row: dict[str, object]) -> dict[str, object]:
    """A learner's assumptions on one line: yes is ✓, no is ✗, – does not apply."""
    headings = {
        "name": "name",
        "type": "type",
        "batch_size": "batch",
        "fine_tuning": "tunes",
        "single_pass": "1 pass",
        "class_incremental": "CIL",
        "subset_replay": "subset",
        "training_time": "train",
        "inference_time": "infer",
        "buffer": "buffer",
        "violates_cisll": "breaks CISLL",
    }
    signs = {True: "✓", False: "✗", None: "–"}
    return {
        heading: value if isinstance(value := row[key], str) else signs[value]  # type: ignore[index]
        for key, heading in headings.items()
    }


def memories() -> dict[str, str]:
    """Memory rule → the first line of its documentation."""
    from verse import memory

    return {name: first_line(memory.get(name)) for name in memory.names()}


def backbones() -> dict[str, str]:
    """Backbone → the first line of its file, which is named after it."""
    from verse import backbones

    files = {name: name.replace("-", "_") for name in backbones.names()}
    return {
        name: first_line(importlib.import_module(f"verse.backbones.{file}"))
        for name, file in files.items()
    }


def datasets() -> dict[str, str]:
    """Data set → what it is."""
    from verse import datasets

    return datasets.describe()


def first_line(documented: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(documented) or "").partition("\n")[0]


KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "learners": learners,
    "datasets": datasets,
    "backbones": backbones,
    "memories": memories,
}


@click.command()
@click.argument("kind", type=click.Choice(list(KINDS)))
@json_option
def command(kind: str, as_json: bool) -> None:
    """List the learners, datasets, backbones or memories there are."""
    with result_only(as_json):
        rows = [{"name": name, "description": line} for name, line in KINDS[kind]().items()]
        more = {row["name"]: row for row in assumptions()} if kind == "learners" else {}
        schemas = settings() if kind == "learners" else {}
    if as_json:
        print_json([row | more.get(row["name"], {}) | schemas.get(row["name"], {}) for row in rows])
        return
    if not more:
        print_table(rows)
        return
    print_table([{"name": row["name"], "fidelity": more[row["name"]]["fidelity"],
                  "description": row["description"]} for row in rows])  # fmt: skip
    click.echo()
    print_table([short(row) for row in more.values()], dense=True)
