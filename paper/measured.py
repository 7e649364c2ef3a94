"""A learner's measured results for its page: finished runs by the statistics of the report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path

from paper.blocks import table
from paper.reading import results_in, runs_of
from verse import streams
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.learners import defaults
from verse.reports import statistics
from verse.reports.cells import Bench, SortedResults, format_settings, orders_of
from verse.reports.statistics import Estimate

ROOT = Path(__file__).parent.parent
FOLDERS = (
    "results",
    "results/first",
    "results/sanity",
    "results/protocol",
)  # what an earlier one has is not asked
NONE = "No finished run yet.\n"
NOTE = "\nMeans with 95 % confidence intervals over seeds and test videos. To reproduce them:\n"
AGAIN = "--results again"  # in ``results`` they are finished already
HEAD = ("data", "ordering", "memory", "settings", "μ_all", "Ω_all", "seeds")


@dataclass(frozen=True)
class Cell:
    """The runs of a learner on one data set in one ordering."""

    bench: Bench
    title: str
    order: str
    capacity: str
    runs: list[Result]
    folder: str


def block(learner: str) -> str:
    """The table of a learner and the commands that repeat it."""
    rows = [row(cell) for cell in cells().get(learner, ())]
    commands = dict.fromkeys(command(cell) for cell in cells().get(learner, ()))
    if not rows and learner == "offline":  # no learner of a grid, but the bound of every run
        bounds = bound_cells()
        rows = [row(cell, bound=True) for cell in bounds]
        commands = dict.fromkeys(command(cell, only=False) for cell in bounds)
    if not rows:
        return NONE
    shell = "\n".join(commands)
    return f"{table(HEAD, rows)}{NOTE}\n```sh\n{shell}\n```\n"


def row(cell: Cell, *, bound: bool = False) -> list[str]:
    """A cell for people; of a bound, Ω is one because it is what Ω divides by."""
    run = cell.runs[0].run
    usual = {} if bound else defaults(run.learner)
    own = {k: v for k, v in run.settings.items() if not bound and v != usual[k]}
    settings = format_settings(own)
    omega = "1" if bound else shown(statistics.omega(cell.runs))
    mu = statistics.mu(cell.runs)
    return [
        cell.title,
        cell.order,
        cell.capacity if not bound else "everything",
        f"`{settings}`" if settings else "defaults",
        shown(mu),
        omega,
        str(mu.n),
    ]


def shown(estimate: Estimate | None) -> str:
    """A mean and its interval."""
    return "–" if estimate is None else str(estimate)


@cache
def cells() -> dict[str, list[Cell]]:
    """Learner → its cells in the main tables of every folder."""
    found: dict[str, list[Cell]] = {}
    for cell in _walk():
        mine = found.setdefault(cell.runs[0].run.learner, [])
        if all((cell.bench, cell.order) != (other.bench, other.order) for other in mine):
            mine.append(cell)
    return {name: sorted(mine, key=_place) for name, mine in found.items()}


def _place(cell: Cell) -> tuple[str, int]:
    return (cell.bench.slug, streams.names().index(cell.order))


def _walk() -> Iterator[Cell]:
    for folder in FOLDERS:
        sorted_runs = finished(folder)
        for bench in sorted_runs.benches:
            by, capacity = sorted_runs.main(bench), sorted_runs.conditions(bench).capacity
            title = sorted_runs.title(bench)
            for order in orders_of(by):
                for orders in by.values():
                    if order in orders:
                        yield Cell(bench, title, order, capacity, orders[order], folder)


def finished(folder: str) -> SortedResults:
    """The runs of a folder."""
    return SortedResults(results_in(ROOT / folder))


def bound_cells() -> list[Cell]:
    """Offline wherever it was trained as a bound: in the runs of who has most seeds."""
    best: dict[tuple[Bench, str], Cell] = {}
    for cell in (c for mine in cells().values() for c in mine):
        place = (cell.bench, cell.order)
        bounded = [r for r in cell.runs if r.offline]
        if len(bounded) > len(best[place].runs if place in best else ()):
            best[place] = replace(cell, runs=[_as_learner(r) for r in bounded])
    return sorted(best.values(), key=_place)


def _as_learner(result: Result) -> Result:
    """The bound of a run in the place of its learner."""
    events = tuple(
        replace(event, accuracy=bound.accuracy, by_video=bound.by_video)
        for event, bound in zip(result.events, result.offline, strict=True)
    )
    return replace(result, events=events)


def command(cell: Cell, *, only: bool = True) -> str:
    """The recipe that holds its runs, or else the command for the first of them."""
    run = cell.runs[0].run
    named = holders().get(cell.runs[0].id)
    if named is None:
        return single(run)
    own = f"recipes/{Path(cell.folder).name}.toml"
    name = own if own in named else named[0]
    chosen = f" --only learner={run.learner}" if only else ""
    return f"verse compare {name}{chosen} {AGAIN}"


def recipes() -> dict[str, str]:
    """Run → the first recipe that has it."""
    return {run: named[0] for run, named in holders().items()}


@cache
def holders() -> dict[str, list[str]]:
    """Run → the recipes that have it, those of the main tables first."""
    found: dict[str, list[str]] = {}
    files = (ROOT / "recipes").glob("*.toml")
    for file in sorted(files, key=lambda f: (not f.name.startswith(("omega", "scale")), f.name)):
        for run in runs_of(file):
            found.setdefault(run.id, []).append(f"recipes/{file.name}")
    return found


def single(run: Run) -> str:
    """``verse run`` with everything that differs from its defaults."""
    plain = Run(run.dataset, order=run.order)
    words = ["verse", "run", run.dataset]
    for field in (f.name for f in fields(Run) if f.name not in ("dataset", "options", "settings")):
        value = getattr(run, field)
        if field in ("learner", "order", "seed") or value != getattr(plain, field):
            words += _option(field, value)
    words += _pairs("--data", run.options.items()) + _pairs("--set", run.settings.items())
    return shlex.join(words)


def _option(field: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [f"--{field}" if value else f"--no-{field}"]
    return [f"--{field.replace('_', '-')}", str(value)]


def _pairs(option: str, items: Iterable[tuple[str, object]]) -> list[str]:
    return [word for key, value in items for word in (option, f"{key}={value}")]
