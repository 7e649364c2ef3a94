"""``verse report``: tables, figures and a page from finished runs, and nothing else."""

from __future__ import annotations

from pathlib import Path

import click

from verse.cli.output import json_option, plural, print_json, result_only


@click.command()
@click.argument("results", type=click.Path(path_type=Path), default=Path("results"))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder to write to. [default: RESULTS/report; with --json nothing is written]",
)
@click.option("--title", help="Title of the page. [default: the titles of the recipes]")
@click.option(
    "--tuning",
    type=click.Path(path_type=Path),
    metavar="RECIPE",
    help="Print the best settings of each learner in this tuning recipe as TOML, and stop.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    help="With --tuning: code of your own that the recipe may name.",
)
@json_option
def command(
    results: Path,
    out: Path | None,
    title: str | None,
    tuning: Path | None,
    allow: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make tables, figures and a web page from finished runs.

    RESULTS is a folder written by verse run or verse compare. Tables are written as Markdown, CSV
    and LaTeX, figures as PNG and SVG, and one HTML page shows all of them. If there is a folder
    RESULTS/tuning, its runs on validation videos are reported separately.
    """
    with result_only(as_json):
        if tuning is not None:
            choose(results, tuning, allow, as_json)
            return
        from verse.experiments.store import Store
        from verse.reports import report
        from verse.types import BadState

        found = report.read_results(results)
        if not found.cells:
            raise BadState(
                f"{results} contains no finished runs: start some with verse run or verse compare"
            )
        if out is None and as_json:
            document = report.document(found)
        else:
            out = results / "report" if out is None else out
            title = title or ", ".join(Store(results).titles()) or report.TITLE
            document = report.make(found, out, title)
    if as_json:
        print_json(document)
    else:
        runs = plural(document["runs"] + document["validation_runs"], "run")
        click.echo(f"{runs}: see {out}/index.html (or index.md)")


def choose(folder: Path, recipe: Path, allow: tuple[str, ...], as_json: bool) -> None:
    """Print what the trials of a recipe say."""
    from verse.experiments.recipe import read_recipe
    from verse.experiments.store import Store
    from verse.reports.tuning import choose_settings as best
    from verse.reports.tuning import fragment

    runs = read_recipe(recipe, allow).runs
    wanted = {run.id for run in runs}
    stores = [Store(folder), *filter(lambda s: s.folder.is_dir(), [Store(folder / "tuning")])]
    results = {r.id: r for store in stores for r in store.results(wanted)}
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
