"""``verse doctor``: was it taught well?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from verse.cli.directory import open_directory, weights_option
from verse.cli.output import json_option, plural, print_json, print_table, result_only

if TYPE_CHECKING:
    from verse.doctor import Report


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--most",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="Number of suspicious samples to list.",
)
@weights_option
@json_option
def command(directory: Path, most: int, weights: str | None, as_json: bool) -> None:
    """Find weak classes, confused classes and wrong labels.

    The command predicts each sample in the memory as if that sample, and those taught together with
    it, had never been learned. You can undo a mislabelled sample by its number while it is recent.
    """
    with result_only(as_json):
        options = {"weights": weights} if weights else {}
        with open_directory(directory, None, readonly=True, options=options) as classifier:
            report = classifier.report(most=most)
    if as_json:
        print_json(report.document())
    else:
        show_report(report)


def show_report(report: Report) -> None:
    """The report for people."""
    if not report.classes:
        click.echo("Nothing to check: there are no samples in the memory.")
        return
    print_table(
        [
            {
                "class": row.label,
                "samples": row.samples,
                "recognised": "" if row.accuracy is None else f"{row.accuracy:.0%}",
                "advice": row.advice,
            }
            for row in report.classes
        ]
    )
    for pair in report.confused:
        click.echo(f"{pair.share:.0%} of {pair.label} are mistaken for {pair.taken_for}")
    if not report.suspects:
        click.echo("No sample contradicts the others.")
        return
    count, verb = len(report.suspects), "looks" if len(report.suspects) == 1 else "look"
    click.echo(f"\n{plural(count, 'sample')} that {verb} mislabelled, worst first:")
    print_table(
        [
            {
                "number": "" if row.seq is None else row.seq,
                "taught as": row.label,
                "looks like": row.looks_like,
                "score": f"{row.score:.2f}",
            }
            for row in report.suspects
        ]
    )
