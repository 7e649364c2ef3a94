"""``verse forget``: a class or samples leave a durable classifier."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.directory import open_directory, refuse_locked
from verse.cli.output import console, json_option, plural, print_json, result_only
from verse.types import BadSetting


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--label", help="The class to forget.")
@click.option("--seq", "seqs", type=click.IntRange(1), multiple=True,
              help="The number of a sample to forget; may be repeated.")  # fmt: skip
@click.option("--retire", is_flag=True,
              help="Retire a class at once, without unlearning it: for a directory that did not "
              "keep features.")  # fmt: skip
@click.option("--weights", help="A file of pretrained weights, if it has moved.")
@click.option("--threads", type=click.IntRange(1), help="[default: half the cores]")
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
    """Make a durable classifier forget a class or samples, exactly.

    It becomes, bit for bit, the one that never saw them, and no file of DIRECTORY holds anything of
    them afterwards. What came later is replayed, which needs the features of it: begin the
    directory with --keep features (verse teach, verse serve). Interrupted or killed, it is done or
    has not begun.
    """
    if (label is None) == (not seqs):
        raise BadSetting("say what to forget: --label NAME, or --seq NUMBER")
    if retire and label is None:
        raise BadSetting("--retire takes a --label")
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
            f"{label} is retired; {directory} knows {plural(len(classes), 'class', 'classes')}"
        )
    else:
        click.echo(
            f"{plural(removed, 'sample')} of {before:,} forgotten: {directory} is as if they had "
            f"never come, and knows {plural(len(classes), 'class', 'classes')}"
        )
