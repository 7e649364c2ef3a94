"""``verse compare``: a grid of runs, in parallel, resumable."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.output import json_option, print_json, print_table, result_only
from verse.types import BadSetting

if TYPE_CHECKING:
    from verse.experiments.engine import Engine
    from verse.experiments.run import Run


@click.command()
@click.argument(
    "recipes", nargs=-1, required=True, metavar="RECIPE...", type=click.Path(path_type=Path)
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=None,
    help="Runs at the same time, one thread each. [default: one per processor]",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Processes on this machine, or a Ray cluster.",
)
@click.option("--address", help="Of an existing Ray cluster, as ray.init takes it.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="The folder of finished runs.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="FIELD=VALUE[,VALUE]",
    help="Only runs with this learner, order, seed, dataset …; may be given again.",
)
@click.option("--root", help="The folder that holds the data sets.")
@click.option("--dry-run", is_flag=True, help="Say what there is to do and do nothing.")
@json_option
def command(
    recipes: tuple[Path, ...],
    jobs: int | None,
    engine: str,
    address: str | None,
    results: Path,
    only: tuple[str, ...],
    root: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run a grid of learners, orderings, data sets and seeds that RECIPE names.

    A finished run is one file in the folder of results; the same command again does only what is
    missing, and a run that was in flight goes on from its checkpoint. A run that fails is reported
    at the end, and the exit code is then 1.
    """
    with result_only(as_json):
        from verse.cli.grid_live import GridLive
        from verse.experiments import grid
        from verse.experiments.recipe import read
        from verse.experiments.store import Store

        store = Store(results)
        runs = list({run.id: run for recipe in recipes for run in read(recipe).runs}.values())
        runs = chosen(runs, only)
        if address is not None and engine != "ray":
            raise BadSetting("--address belongs to --engine ray")
        # looking does no harm while another process fills the store
        with contextlib.nullcontext() if dry_run else store.claimed():
            # On other machines the checkpoint's folder may not exist: Ray workers have their own.
            tasks = grid.plan(runs, store, partials=engine == "local" and not dry_run)
            missing = [task for task in tasks if task.kind == "run"]
            summary: dict[str, Any] = {
                "runs": len(runs),
                "finished_before": len(runs) - len(missing),
                "missing": len(missing),
                "results": str(results),
            }
            if dry_run or not missing:
                outcome = grid.Outcome()
            else:
                with GridLive(runs, tasks, store) as live:
                    made = start(engine, jobs, root, address)
                    live.width = made.width
                    outcome = grid.drive(tasks, made, store, live)
    summary |= {"done": outcome.done, "failed": outcome.failed}
    if dry_run:
        summary["to_do"] = to_do(runs, {task.id for task in missing})
    if as_json:
        print_json(summary)
    else:
        describe(summary, outcome.notes, dry_run)
    if outcome.failed:
        raise click.exceptions.Exit(1)


def start(engine: str, jobs: int | None, root: str | None, address: str | None) -> Engine:
    """The engine of that name."""
    if engine == "ray":
        from verse.experiments.ray_engine import RayEngine

        return RayEngine(address, jobs=jobs, root=root)
    from verse.experiments.local_engine import LocalEngine

    return LocalEngine(jobs or processors(), root)


def processors() -> int:
    """Those this process may use, where the system says; otherwise all."""
    allowed = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def chosen(runs: Sequence[Run], only: Sequence[str]) -> list[Run]:
    """The runs that every filter lets pass."""
    kept = list(runs)
    for text in only:
        field, equals, values = text.partition("=")
        if not equals or (kept and field not in kept[0].document()):
            raise BadSetting(f"--only {text!r}: write a field of a run and its values, order=iid")
        wanted = {value.strip() for value in values.split(",")}
        kept = [run for run in kept if shown(run, field) & wanted]
    if not kept:
        raise BadSetting("no run of the recipe passes all filters (--only)")
    return kept


def shown(run: Run, field: str) -> set[str]:
    """The forms a filter may name a value by: folder:eth80 also as eth80."""
    value = str(run.document()[field])
    return {value, value.partition(":")[2]} if field == "dataset" else {value}


def to_do(runs: Sequence[Run], missing: set[str]) -> list[dict[str, Any]]:
    """Runs and missing ones by data set and learner."""
    every = Counter((run.dataset, run.learner) for run in runs)
    left = Counter((run.dataset, run.learner) for run in runs if run.id in missing)
    return [
        {"data set": dataset, "learner": learner, "runs": count, "to do": left[dataset, learner]}
        for (dataset, learner), count in every.items()
    ]


def describe(summary: dict[str, Any], notes: Sequence[str], dry_run: bool) -> None:
    """The outcome for people."""
    for note in notes:
        click.echo(f"Warning: {note}", err=True)
    for task, text in summary["failed"].items():
        click.echo(f"\nfailed: {task}\n{text.rstrip()}", err=True)
    if dry_run:
        click.echo(f"{summary['runs']} runs, {summary['missing']} of them to do")
        if summary["missing"]:
            print_table([row for row in summary["to_do"] if row["to do"]])
        return
    click.echo(
        f"{summary['runs']} runs: {summary['finished_before']} were finished before, "
        f"{len(summary['done'])} done now, {len(summary['failed'])} failed; "
        f"results in {summary['results']}"
    )
    if summary["failed"]:
        click.echo("the same command tries the missing runs again", err=True)
