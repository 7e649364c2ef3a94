"""``verse forget``: a class or samples leave a durable classifier."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.directory import open_directory, refuse_locked, threads_option, weights_option
from verse.cli.output import console, json_option, plural, print_json, result_only
from verse.types import BadSetting


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--label", help="Class to forget.")
@click.option(
    "--seq",
    "seqs",
    type=click.IntRange(1),
    multiple=True,
    help="Number of a sample to forget; can be repeated.",
)
@click.option(
    "--retire",
    is_flag=True,
    help="Only stop predicting the class, without unlearning it. Works without --keep features.",
)
@weights_option
@threads_option
@json_option
def command(
    directory: Path,
    label: str | None,
    seqs: tuple[int, ...],
    retire: bool,
    weights: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Remove a class or single samples from a classifier, exactly.

    Afterwards the classifier is bit for bit the same as if it had never seen them, and no file in
    DIRECTORY contains anything of them. The command learns all later samples again, so it needs
    their features: create the classifier with --keep features (verse teach, verse serve). If the
    command is interrupted, it has either finished or changed nothing.
    """
    if (label is None) == (not seqs):
        raise BadSetting("give either --label NAME or --seq NUMBER")
    if retire and label is None:
        raise BadSetting("--retire needs a --label")
    with result_only(as_json):
        from rich.progress import Progress

        refuse_locked(directory)
        options = {"weights": weights} if weights else {}
        with open_directory(directory, threads, options=options) as classifier:
            before, shown = classifier.samples, console()
            known = next((c for c in classifier.classes if str(c) == label), label)
            if retire and known is not None:
                classifier.forget(known)
                removed = 0
            else:
                with Progress(console=shown, disable=not shown.is_terminal) as bar:
                    task = bar.add_task("Forgetting", total=None)
                    removed = classifier.forget_exactly(
                        label=known,
                        seqs=seqs or None,
                        progress=lambda done, n: bar.update(task, completed=done, total=n),
                    )
            classes, samples = classifier.classes, classifier.samples
    result = {"forgotten": removed, "exact": not retire, "samples": samples, "classes": classes}
    if as_json:
        print_json(result)
    elif retire:
        click.echo(
            f"{label} is retired; {directory} now has {plural(len(classes), 'class', 'classes')}"
        )
    else:
        click.echo(
            f"{removed:,} of {plural(before, 'sample')} forgotten; {directory} now has "
            f"{plural(len(classes), 'class', 'classes')}"
        )
