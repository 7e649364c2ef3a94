"""``verse report``: tables, figures and a page from finished runs, and nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.output import json_option, print_json, result_only


@click.command()
@click.argument("results", type=click.Path(path_type=Path), default=Path("results"))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The folder to write to. [default: docs/results, with --json none]",
)
@click.option(
    "--tuning",
    type=click.Path(path_type=Path),
    metavar="RECIPE",
    help="Instead, print the best settings of each learner in this tuning recipe, as TOML.",
)
@json_option
def command(results: Path, out: Path | None, tuning: Path | None, as_json: bool) -> None:
    """Make tables, figures and a page from finished runs.

    Tables come as Markdown, CSV and LaTeX, figures as PNG and SVG, and one HTML page holds both.
    RESULTS is the folder that verse compare fills; RESULTS/tuning may hold runs on validation
    videos, which stay apart from those on test videos, and RESULTS/losses what verse run --track
    wrote down.
    """
    with result_only(as_json):
        if tuning is None:
            from verse.reports import page
            from verse.reports.source import read
            from verse.types import BadState

            found = read(results)
            if not found.cells:
                raise BadState(f"{results} holds no finished runs: fill it with verse compare")
            if out is None and as_json:
                document = page.document(found)
            else:
                out = Path("docs/results") if out is None else out
                document = page.write(found, out)
        else:
            choose(results, tuning, as_json)
            return
    if as_json:
        print_json(document)
    else:
        click.echo(f"{document['runs']} runs: see {out}/index.html (or index.md)")


def choose(folder: Path, recipe: Path, as_json: bool) -> None:
    """Print what the trials of a recipe say."""
    from verse.experiments.recipe import read
    from verse.experiments.store import Store
    from verse.reports.tuning import choose as best
    from verse.reports.tuning import fragment

    runs = read(recipe).runs
    wanted = {run.id for run in runs}
    stores = [Store(folder), *filter(lambda s: s.folder.is_dir(), [Store(folder / "tuning")])]
    results = {r.run.id: r for store in stores for r in store.results(wanted)}
    choices = best(runs, results)
    if len(results) < len(runs):
        click.echo(
            f"{len(runs) - len(results)} of {len(runs)} runs are missing: verse compare {recipe}",
            err=True,
        )
    if as_json:
        print_json(choices)
    else:
        click.echo(fragment(choices))
