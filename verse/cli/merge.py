"""``verse merge``: two classifiers become one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.correct import has_terminal
from verse.cli.directory import weights_option
from verse.cli.output import json_option, plain_warnings, plural, print_json, result_only
from verse.types import BadLabel, BadSetting, Label

if TYPE_CHECKING:
    from verse.backbones import Backbone
    from verse.classifier import StreamClassifier


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Where to write the result: a new file if A is a file, otherwise a new directory.",
)
@click.option("--same", is_flag=True, help="Treat a label that both have as the same class.")
@click.option(
    "--separate",
    is_flag=True,
    help="Treat a label that both have as two classes; the one of B becomes 'LABEL (2)'.",
)
@click.option(
    "--rename-b", multiple=True, metavar="OLD=NEW", help="Rename a class of B; can be repeated."
)
@weights_option
@json_option
def command(
    a: Path,
    b: Path,
    out: Path,
    same: bool,
    separate: bool,
    rename_b: Sequence[str],
    weights: str | None,
    as_json: bool,
) -> None:
    """Merge two classifiers with the same backbone and learner.

    A and B are directories, or files written by verse export --teachable. They are not changed. The
    class statistics are added exactly. The new memory keeps samples of both. The network is then
    trained on that memory to distinguish all classes.
    """
    if same and separate:
        raise BadSetting("give --same or --separate, not both")
    if out.exists():
        raise BadSetting(f"{out} already exists: choose another name")
    with result_only(as_json):
        from verse.durable import begin
        from verse.portable import merge

        with plain_warnings():
            one = _load(a, weights, None)
            two = _load(b, weights, one.backbone)
        renamed = dict(_rename(text, two.classes) for text in rename_b)
        shared = [label for label in two.classes if label in one.classes and label not in renamed]
        if shared and not same and not separate:
            renamed |= _ask(shared)
        merged = merge(one, two, rename_b=renamed, separate=separate)
        if a.is_dir():
            begin(out, merged)
        else:
            merged.save(out)
    if as_json:
        print_json({"out": out, "labels": merged.classes, "samples": merged.samples})
    else:
        classes = plural(len(merged.classes), "class", "classes")
        click.echo(f"{out}: {classes} after {plural(merged.samples, 'sample')}")


def _load(path: Path, weights: str | None, backbone: Backbone | None) -> StreamClassifier:
    """From a directory or a file; the second has the backbone of the first, or is refused."""
    from verse.classifier import StreamClassifier
    from verse.cli.directory import open_directory

    if not path.is_dir():
        return StreamClassifier.load(path, backbone=backbone, weights=weights)
    options: dict[str, Any] = {"weights": weights} if weights else {}
    if backbone is not None:
        options = {"backbone": backbone}
    with open_directory(path, None, readonly=True, options=options) as classifier:
        return classifier.copy()


def _rename(text: str, labels: Sequence[Label]) -> tuple[Label, Label]:
    """OLD=NEW; a number in the shell may be one of the classes."""
    old, equals, new = text.partition("=")
    if not equals or not new:
        raise BadLabel(f"--rename-b {text!r}: write OLD=NEW")
    return next((label for label in labels if str(label) == old), old), new


def _ask(shared: Sequence[Label]) -> dict[Label, Label]:
    """New labels for those classes of B that are not those of A."""
    if not has_terminal():
        names = ", ".join(str(label) for label in shared)
        raise BadLabel(
            f"both classifiers have {names}: give --same if it is the same class, --separate if it "
            "is not, or --rename-b OLD=NEW"
        )
    renamed: dict[Label, Label] = {}
    for label in shared:
        if not click.confirm(f"Both have {label!s}. Is it the same class?", default=True, err=True):
            renamed[label] = click.prompt(f"New label for {label!s} of B", err=True)
    return renamed
