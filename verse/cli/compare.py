"""``verse compare``: a grid of runs, in parallel, resumable."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from verse.cli.output import json_option, print_json, print_table, result_only
from verse.types import BadSetting

if TYPE_CHECKING:
    from verse.experiments.engine import GridEngine, Task
    from verse.experiments.run import Run
    from verse.experiments.store import Store


@click.command()
@click.argument(
    "recipes", nargs=-1, required=True, metavar="RECIPE...", type=click.Path(path_type=Path)
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=None,
    help="Number of parallel runs, one thread each. [default: number of processors]",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where to run: processes on this machine, or a Ray cluster.",
)
@click.option("--address", help="Address of an existing Ray cluster, as for ray.init.")
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for the results.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="FIELD=VALUE[,VALUE]",
    help="Only runs with this learner, order, seed, dataset …; can be repeated.",
)
@click.option("--root", help="Folder that contains the data sets.")
@click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    help="Code of your own that the recipes may name, such as my_module.MyLearner; "
    "can be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Show what would run, and stop.")
@json_option
def command(
    recipes: tuple[Path, ...],
    jobs: int | None,
    engine: str,
    address: str | None,
    results: Path,
    only: tuple[str, ...],
    root: str | None,
    allow: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Run all experiments of a recipe: learners, orderings, data sets and seeds.

    RECIPE is a TOML file. Each finished run is one line in the folder of results. If you start the
    same command again, it skips finished runs and resumes interrupted ones. Several commands, also
    on several machines, can share one folder of results; each run is then done once. Runs that fail
    are listed at the end, and the exit code is 1.
    """
    with result_only(as_json):
        from verse.cli.grid_live import GridLive
        from verse.experiments import grid
        from verse.experiments.recipe import read_recipe
        from verse.experiments.store import Store

        store = Store(results)
        grids = [read_recipe(recipe, allow) for recipe in recipes]
        runs = list({run.id: run for each in grids for run in each.runs}.values())
        runs = filter_runs(runs, only)
        if address is not None and engine != "ray":
            raise BadSetting("--address needs --engine ray")
        # On other machines the checkpoint's folder may not exist: Ray workers have their own.
        tasks = grid.plan_tasks(runs, store, partials=engine == "local" and not dry_run)
        missing = [task for task in tasks if task.kind == "run"]
        summary: dict[str, Any] = {
            "runs": len(runs),
            "finished_before": len(runs) - len(missing),
            "missing": len(missing),
            "results": str(results),
        }
        if dry_run or not missing:
            outcome = grid.GridOutcome()
        else:
            store.add_titles([each.title for each in grids])
            with GridLive(runs, tasks, store) as live:
                made = make_engine(engine, jobs, root, address)
                live.width = made.width
                outcome = grid.drive(tasks, made, store, live)
    summary |= {"done": outcome.done, "done_elsewhere": outcome.elsewhere, "failed": outcome.failed}
    if dry_run:
        summary["to_do"] = list_missing(runs, {task.id for task in missing})
        summary["hours"] = hours(tasks, store, jobs or processors())
        left = {task.id for task in missing}
        summary["data_missing"] = without_data([run for run in runs if run.id in left], root)
    if as_json:
        print_json(summary)
    else:
        describe_grid(summary, outcome.notes, dry_run)
    if outcome.failed:
        raise click.exceptions.Exit(1)


def make_engine(engine: str, jobs: int | None, root: str | None, address: str | None) -> GridEngine:
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


def filter_runs(runs: Sequence[Run], only: Sequence[str]) -> list[Run]:
    """The runs that every filter lets pass."""
    kept = list(runs)
    for text in only:
        field, equals, values = text.partition("=")
        if not equals or (kept and field not in kept[0].document()):
            raise BadSetting(f"--only {text!r}: write FIELD=VALUE, for example order=iid")
        wanted = {value.strip() for value in values.split(",")}
        kept = [run for run in kept if list_forms(run, field) & wanted]
    if not kept:
        raise BadSetting("no run of the recipe matches all --only filters")
    return kept


def list_forms(run: Run, field: str) -> set[str]:
    """The forms a filter may name a value by: folder:eth80 also as eth80."""
    value = str(run.document()[field])
    return {value, value.partition(":")[2]} if field == "dataset" else {value}


def list_missing(runs: Sequence[Run], missing: set[str]) -> list[dict[str, Any]]:
    """Runs and missing ones by data set and learner."""
    every = Counter((run.dataset, run.learner) for run in runs)
    left = Counter((run.dataset, run.learner) for run in runs if run.id in missing)
    return [
        {"data set": dataset, "learner": learner, "runs": count, "to do": left[dataset, learner]}
        for (dataset, learner), count in every.items()
    ]


def hours(tasks: Sequence[Task], store: Store, width: int) -> float | None:
    """About how long it will take by what runs like these took; None where none is known."""
    from verse.experiments.timing import Timing

    timing = Timing(tasks)
    known = store.results(skip_damaged=True) if store.folder.is_dir() else []
    for result in known:
        timing.learn(result.run, result.seconds)
    seconds = timing.estimate_seconds({}, width) if tasks else 0.0
    return None if seconds is None else seconds / 3600


def without_data(runs: Sequence[Run], root: str | None) -> list[str]:
    """Why data sets cannot be read, one sentence for each."""
    from verse.experiments.prepare import load_data
    from verse.types import VerseError

    found: dict[str, str] = {}
    for run in {run.dataset: run for run in runs}.values():
        if run.dataset == "tabletop":  # whether it can be drawn is known without drawing it
            run = replace(run, options={**run.options, "cache": False})
        try:
            load_data(run, root=root)
        except VerseError as error:
            found[run.dataset] = f"{run.dataset}: {str(error).removeprefix(f'{run.dataset}: ')}"
    return list(found.values())


def describe_grid(summary: dict[str, Any], notes: Sequence[str], dry_run: bool) -> None:
    """The outcome for people."""
    from verse.experiments.timing import format_duration

    for note in notes:
        click.echo(f"Warning: {note}", err=True)
    alike: dict[str, list[str]] = {}
    for task, text in summary["failed"].items():
        alike.setdefault(text.rstrip(), []).append(task)
    for text, tasks in alike.items():
        more = f" and {len(tasks) - 3} more" if len(tasks) > 3 else ""
        click.echo(f"\nfailed: {', '.join(tasks[:3])}{more}\n{text}", err=True)
    if dry_run:
        click.echo(f"{summary['runs']} runs, {summary['missing']} of them to do")
        if summary["missing"]:
            print_table([row for row in summary["to_do"] if row["to do"]])
            known = summary["hours"]
            click.echo(
                "time unknown: no similar run is finished yet"
                if known is None
                else f"about {format_duration(known * 3600)}, estimated from finished runs"
            )
        for problem in summary["data_missing"]:
            click.echo(f"Warning: the data is missing: {problem}", err=True)
        return
    click.echo(
        f"{summary['runs']} runs: {summary['finished_before']} already finished, "
        f"{len(summary['done'])} finished now, {len(summary['failed'])} failed; "
        f"results in {summary['results']}"
    )
    if summary["failed"]:
        click.echo("run the same command again to retry the missing runs", err=True)
