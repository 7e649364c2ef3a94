"""Choosing settings from runs on validation videos, by one rule for every learner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.reports.cells import Bench, CellKey, Results, SortedResults, format_settings
from verse.reports.tables import Table, Text
from verse.types import BadState


@dataclass(frozen=True)
class Choice:
    """The best settings of a learner by mean μ_all of its runs, and the number of trials."""

    dataset: str
    learner: str
    settings: dict[str, Any]
    mu: float
    trials: int
    runs: int
    worst: float


def choose_settings(runs: Sequence[Run], results: Mapping[str, Result]) -> list[Choice]:
    """For every data set and learner of a recipe; the first of equals wins.

    ``results`` are by identity; a trial counts only with all of its seeds.
    """
    for run in runs:
        if run.validation is None:
            raise BadState(
                f"{run.name} is tested on test videos: settings are chosen on validation videos "
                "only (validation = … in the recipe)"
            )
    trials: dict[tuple[str, str], dict[str, list[Run]]] = {}
    for run in runs:
        by = trials.setdefault((run.dataset, run.learner), {})
        by.setdefault(json.dumps(dict(run.settings), sort_keys=True), []).append(run)
    choices = []
    for (dataset, learner), by in trials.items():
        means = {
            settings: sum(results[run.id].mu_all for run in mine) / len(mine)
            for settings, mine in by.items()
            if all(run.id in results for run in mine)
        }
        if means:
            best = max(means, key=means.__getitem__)
            choices.append(
                Choice(
                    dataset,
                    learner,
                    json.loads(best),
                    means[best],
                    len(means),
                    len(by[best]),
                    min(means.values()),
                )
            )
    return choices


def fragment(choices: Sequence[Choice]) -> str:
    """The table ``[tuned]`` of a recipe, one for each data set.

    >>> best = {"lr": 0.01, "clip": None}
    >>> print(fragment([Choice("tabletop", "tinyer", best, 0.9, 9, 2, 0.5)]))
    # tabletop
    [tuned]
    tinyer = {lr = 0.01, clip = "none"}  # μ_all 0.9000, best of 9 trials, mean of 2 runs
    """
    lines: list[str] = []
    for dataset in dict.fromkeys(choice.dataset for choice in choices):
        lines += [f"# {dataset}", "[tuned]"]
        for c in (c for c in choices if c.dataset == dataset and c.settings):
            inside = ", ".join(f"{name} = {_toml(value)}" for name, value in c.settings.items())
            lines.append(
                f"{c.learner} = {{{inside}}}  # μ_all {c.mu:.4f}, best of {c.trials} trials, "
                f"mean of {c.runs} runs"
            )
    return "\n".join(lines)


def _toml(value: Any) -> str:
    if value is None:
        return '"none"'  # TOML has no null; a learner reads this word
    if isinstance(value, bool | str):
        return json.dumps(value)
    return repr(value)


def sort_key(value: Any) -> tuple[int, Any]:
    """To put values in order: numbers, then words."""
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def _least(cell: tuple[CellKey, Results]) -> list[tuple[int, Any]]:
    """To put trials in order."""
    return [sort_key(value) for _, value in sorted(cell[1][0].run.settings.items())]


def tabulate_tuning(found: SortedResults, bench: Bench) -> Table:
    """All trials on the validation videos of a data set: the best of each learner.

    Of equally good ones that which was taken to the test videos.
    """
    groups: dict[str, list[tuple[float, bool, str, int]]] = {}
    taken = {
        (key.learner, key.settings)
        for key in found.cells
        if (key.bench.dataset, key.bench.validation) == (bench.dataset, None)
    }
    for key, runs in sorted(found.cells.items(), key=_least):
        if key.bench == bench:
            mean = sum(run.mu_all for run in runs) / len(runs)
            explicit = format_settings(runs[0].run.settings)
            other = "" if runs[0].run.batchnorm == "frozen" else " batchnorm = train"
            label = f"{key.order}: {explicit or 'defaults'}{other}"
            groups.setdefault(key.learner, []).append(
                (mean, (key.learner, key.settings) in taken, label, len(runs))
            )
    rows, records = [], []
    for learner, trials in sorted(groups.items()):
        best = max(trials, key=lambda trial: trial[:2])
        equal = sum(trial[0] == best[0] for trial in trials) - 1
        as_good = f" (as good: {equal} other{'s' if equal > 1 else ''})" if equal else ""
        worst = min(trials, key=lambda trial: trial[0])
        rows.append(
            [
                Text(learner),
                Text(str(len(trials))),
                Text(best[2] + as_good),
                Text(f"{best[0]:.4f}"),
                Text(f"{worst[0]:.4f}"),
                Text(str(best[3])),
            ]
        )
        records += [
            {"dataset": bench.dataset, "learner": learner, "trial": label, "mu_all": mean, "n": n}
            for mean, _, label, n in trials
        ]
    head = ["learner", "trials", "best trial", "its μ_all", "worst μ_all", "seeds"]
    note = (
        f"Validation videos ({bench.validation} of the training videos); none of these runs has "
        "seen a test video, and none of their seeds is used on one. Of equally good trials the "
        "comparison takes the recipe's first."
    )
    return Table(f"tuning-{bench.slug}", f"Tuning on {bench.title}", head, rows, note, records)
