"""``verse list``: what there is to choose from, one line each."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import click

from verse.cli.output import json_option, print_json, print_table, result_only
from verse.configuration import DEFAULT_BACKBONE, DEFAULT_LEARNER, DEFAULT_MEMORY


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


def list_settings() -> dict[str, dict[str, object]]:
    """Learner → its hyper-parameters as JSON schema."""
    from verse import learners

    return {name: {"settings": learners.schema(name)} for name in learners.names()}


def summarize_traits(row: dict[str, object]) -> dict[str, object]:
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
    """Backbone → what it is; capitals in a name stand for yours."""
    from verse import backbones

    return backbones.describe()


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
LEGEND = {
    "fidelity": "faithful: as published; adapted: its page lists the differences",
    "type": "made for large batches, for a stream of small batches, or for single samples",
    "batch": "number of samples it needs at once; ≫ 1: many",
    "tunes": "needs fine-tuning before it can predict",
    "1 pass": "sees each sample of the stream once",
    "CIL": "class-incremental: needs no task labels",
    "subset": "replays a part of its memory in each step, not all of it",
    "train, infer": "passes over the data in training and before a prediction; ζ(1): one, ζ(n): n",
    "buffer": "share of the samples that it keeps; -: not stated",
    "breaks CISLL": "does not fit class-incremental streaming lifelong learning",
}


def list_defaults() -> dict[str, str]:
    """Kind → the one that is taken when none is named."""
    return {
        "learners": DEFAULT_LEARNER,
        "backbones": DEFAULT_BACKBONE,
        "memories": DEFAULT_MEMORY,
    }


def rows_of(kind: str) -> list[dict[str, object]]:
    """One document for each, as ``--json`` gives them."""
    default = list_defaults().get(kind)
    rows: list[dict[str, object]] = [
        # docstrings mark code with two backticks; a terminal shows them as they are
        {"name": name, "description": line.replace("``", ""), "default": name == default}
        for name, line in KINDS[kind]().items()
    ]
    if kind == "learners":
        more = {str(row["name"]): row for row in assumptions()}
        schemas = list_settings()
        rows = [row | more[str(row["name"])] | schemas[str(row["name"])] for row in rows]
    return rows


def mark_default(row: dict[str, object]) -> str:
    """A name, with a mark if it is the default."""
    return f"{row['name']} (default)" if row["default"] else str(row["name"])


@click.command()
@click.argument("kind", required=False, type=click.Choice(list(KINDS)))
@json_option
def command(kind: str | None, as_json: bool) -> None:
    """List the available learners, data sets, backbones and memories.

    Without an argument it lists all of them. verse list learners also shows what each method
    assumes.
    """
    with result_only(as_json):
        found = {each: rows_of(each) for each in ([kind] if kind else KINDS)}
    if as_json:
        print_json(found[kind] if kind else found)
    elif kind == "learners":
        show_learners(found[kind])
    else:
        for number, (each, rows) in enumerate(found.items()):
            if kind is None:
                click.echo(("\n" if number else "") + each.upper())
            print_table(
                [{"name": mark_default(row), "description": row["description"]} for row in rows]
            )
        if kind is None:
            click.echo("\nMore about learners: verse list learners")


def show_learners(rows: list[dict[str, object]]) -> None:
    """What each does, what each assumes, and what the columns mean."""
    columns = ("fidelity", "description")
    print_table(
        [{"name": mark_default(row), **{name: row[name] for name in columns}} for row in rows]
    )
    click.echo()
    print_table([summarize_traits(row) for row in rows], dense=True)
    click.echo("\n✓ yes   ✗ no   – does not apply. The table describes each method as published.")
    print_table([{"column": column, "meaning": says} for column, says in LEGEND.items()])
