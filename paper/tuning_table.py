"""The tuning at the paper's scale as tables: what was tried, and what was chosen."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from paper.tune import edges_of, rate_of
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.reports.cells import format_settings
from verse.reports.page import Section
from verse.reports.tables import Table, Text, format_signed
from verse.reports.tuning import Choice, choose_settings

Trials = dict[tuple[tuple[str, object], ...], list[float]]
STAGES = """Tuning has two stages and uses validation videos only, never a test video.

1. Eight trials for every method trained by gradient descent: learning rates 0.01, 0.03, 0.1 and
   0.3, clipped at 1 or not, in class-instance and iid, with one seed (`recipes/tuning-rates.toml`,
   and `tuning-rates-short.toml` for the methods that run on the short sets only). Closed forms try
   their features and one number. If the best rate or number is the largest or the smallest one, the
   next one is tried as well, until the best is not at the edge (`tuning-edges-*.toml`). VERSE has
   α = β here.
2. Four trials with three seeds (`tuning-knobs-*.toml`): the best of the first stage, and three
   other values of the setting that matters most for the method. Methods without such a setting use
   the next best of the first stage. If the chosen value is the largest or the smallest one, one
   more trial goes a step further (`tuning-beyond-*.toml`), only to see what this would give.

Trials use at most 1,600 training frames of a set and 10 samples per class. `verse-no-virtual` and
`verse-new-sample` are controls for VERSE and use its settings. `verse-joint` has one setting for
all data, which was chosen on validation videos of the same five sets."""


def sections(results: Sequence[Result], recipes: Path) -> list[Section]:
    """The page of the tuning: how it was done, and both stages as far as they are finished."""
    by = {r.id: r for r in results}
    first = Section("Tuning", STAGES)
    first.add(first_stage(by, recipes), second_stage(by, recipes), one_step_beyond(by, recipes))
    first.add(on_resnet18(by, recipes))
    if not first.parts:
        first.text += "\n\nNo method has all its trials yet."
    return [first]


def first_stage(results: Mapping[str, Result], recipes: Path) -> Table | None:
    """For each finished set and method: the best with clipping, the best without."""
    rows, records = [], []
    runs: list[Run] = []
    stage = [recipes / f"{name}.toml" for name in ("tuning-rates", "tuning-rates-short")]
    for file in [*stage, *sorted(recipes.glob("tuning-edges-*.toml"))]:
        runs += read_recipe(file).runs
    for name in dict.fromkeys(run.dataset for run in runs):
        mine = [run for run in runs if run.dataset == name]
        for learner in dict.fromkeys(run.learner for run in mine):
            wanted = [run for run in mine if run.learner == learner]
            found = [results[run.id] for run in wanted if run.id in results]
            if len(found) == len(wanted):
                data = name.removeprefix("folder:")
                rows.append([Text(cell) for cell in (data, f"`{learner}`", *_row(found))])
                records += [
                    {"dataset": data, "learner": learner, "order": r.run.order}
                    | {"settings": dict(r.run.settings), "mu_all": r.mu_all}
                    for r in found
                ]
    head = ["data", "method", "clipped at 1", "not clipped", "class-instance", "iid", "trials"]
    note = (
        "Mean μ_all of both orderings on validation videos, one seed, with the best learning rate "
        "of those tried, beyond an edge too; then each ordering, for the better of clipped and "
        "not clipped."
    )
    title = "First stage: learning rate and clipping"
    return Table("tuning-first", title, head, rows, note, records) if rows else None


def second_stage(results: Mapping[str, Result], recipes: Path) -> Table | None:
    """For each set and method the settings with the best mean over orderings and seeds."""
    rows, records = [], []
    for file in sorted(recipes.glob("tuning-knobs-*.toml")):
        runs = read_recipe(file).runs
        for choice in choose_settings(runs, results):
            data = choice.dataset.removeprefix("folder:")
            settings = with_edges(choice, runs)
            seeds = len({run.seed for run in runs if run.learner == choice.learner})
            cells = (f"`{choice.learner}`", settings, f"{choice.mu:.3f}", f"{choice.worst:.3f}")
            rows.append([Text(c) for c in (data, *cells, str(choice.trials), str(seeds))])
            records.append(
                {"dataset": data, "learner": choice.learner, "settings": choice.settings}
                | {"mu_all": choice.mu, "worst": choice.worst, "trials": choice.trials}
            )
    head = ["data", "method", "chosen", "its μ_all", "worst", "trials", "seeds"]
    note = (
        "Mean μ_all of both orderings and all seeds on validation videos. A value at the edge of "
        "those that the second stage tried is marked: the next table goes one step further."
    )
    title = "Second stage: what was chosen"
    return Table("tuning-second", title, head, rows, note, records, prose=True) if rows else None


def one_step_beyond(results: Mapping[str, Result], recipes: Path) -> Table | None:
    """For each value at an edge of the second stage: what one more step changes."""
    rows, records = [], []
    for file in sorted(recipes.glob("tuning-beyond-*.toml")):
        data = file.stem.removeprefix("tuning-beyond-")
        second = read_recipe(recipes / f"tuning-knobs-{data}.toml").runs
        chosen = {choice.learner: choice for choice in choose_settings(second, results)}
        trials: dict[str, list[Run]] = defaultdict(list)
        for run in read_recipe(file).runs:
            trials[run.learner + format_settings(run.settings)].append(run)
        for runs in trials.values():
            if any(run.id not in results for run in runs):
                continue
            learner, settings = runs[0].learner, runs[0].settings
            base = chosen[learner]
            changed = {k: v for k, v in settings.items() if base.settings.get(k) != v}
            gain = statistics.mean(results[run.id].mu_all for run in runs) - base.mu
            step = ", ".join(f"{k} = {base.settings[k]} → {v}" for k, v in changed.items())
            rows.append([Text(cell) for cell in (data, f"`{learner}`", step, format_signed(gain))])
            records.append(
                {"dataset": data, "learner": learner, "settings": dict(settings), "gain": gain}
            )
    note = (
        "Change of the mean μ_all on validation videos, over both orderings and three seeds. The "
        "comparison keeps the values chosen by the second stage."
    )
    title = "One step beyond the edges of the second stage"
    head = ["data", "method", "step", "change of μ_all"]
    return Table("tuning-beyond", title, head, rows, note, records, prose=True) if rows else None


def on_resnet18(results: Mapping[str, Result], recipes: Path) -> Table | None:
    """Every trial on the paper's network, the best of each method first."""
    runs = read_recipe(recipes / "tuning-resnet18.toml").runs
    trials: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs:
        if run.id in results:
            settings = format_settings(dict(sorted(run.settings.items())))
            trials[run.learner][settings][run.order] = results[run.id].mu_all
    orders = list(dict.fromkeys(run.order for run in runs))
    rows, records = [], []
    for learner, tried in trials.items():
        whole = {s: by for s, by in tried.items() if len(by) == len(orders)}
        means = {settings: statistics.mean(by.values()) for settings, by in whole.items()}
        for settings in sorted(means, key=means.__getitem__, reverse=True):
            best = means[settings] == max(means.values())
            cells = [
                f"{value:.3f}" for value in (means[settings], *map(whole[settings].get, orders))
            ]
            rows.append([Text(f"`{learner}`"), Text(settings), *(Text(c, best) for c in cells)])
            records.append({"learner": learner, "settings": settings} | whole[settings])
    note = (
        "μ_all on validation videos of eth80, every sixth view, 10 samples a class, one seed: the "
        "mean of both orderings, then each. Bold: chosen."
    )
    title = "ResNet-18 from layer4.1: every trial"
    head = ["method", "settings", "mean", *orders]
    return Table("tuning-resnet18", title, head, rows, note, records, prose=True) if rows else None


def with_edges(choice: Choice, runs: Sequence[Run]) -> str:
    """Settings as recipes have them; those of the second stage that lie at an edge say so."""
    edges = edges_of(choice, runs)
    parts = []
    for name, value in choice.settings.items():
        edge = ""
        if tried := edges.get(name):
            edge = f" ({'largest' if value == max(tried) else 'smallest'} tried)"
        parts.append(f"{format_settings({name: value})}{edge}")
    return ", ".join(parts)


def _row(found: list[Result]) -> list[str]:
    trials: Trials = defaultdict(list)
    for r in found:
        trials[tuple(sorted(r.run.settings.items()))].append(r.mu_all)
    means = {key: statistics.mean(mus) for key, mus in trials.items()}
    best = max(means, key=means.__getitem__)
    taken = {
        r.run.order: f"{r.mu_all:.3f}"
        for r in found
        if tuple(sorted(r.run.settings.items())) == best
    }
    by_order = [taken[order] for order in ("class-instance", "iid")]
    if "clip" not in dict(best):
        words = ", ".join(f"{k} = {'OAS' if v is None else v}" for k, v in best)
        return [f"{means[best]:.3f} ({words})", "–", *by_order, str(len(means))]
    cells = []
    for clip in (1.0, None):
        of = {key: mu for key, mu in means.items() if dict(key)["clip"] == clip}
        top = max(of, key=of.__getitem__)
        cells.append(f"{of[top]:.3f} (rate {rate_of(dict(top)):g})")
    return [*cells, *by_order, str(len(means))]
