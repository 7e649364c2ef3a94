"""The first stage of the tuning as a table: what clipping and the rate do to each method."""

from __future__ import annotations

import statistics
from collections import defaultdict

from paper.blocks import table
from paper.source import ROOT
from paper.tune import rate_of
from verse.experiments.recipe import read_recipe
from verse.experiments.result import Result
from verse.experiments.store import Store

Trials = dict[tuple[tuple[str, object], ...], list[float]]


def first_stage() -> str:
    """For each finished set and method: the best with clipping, the best without."""
    results = {r.id: r for r in Store(ROOT / "results" / "tuning-scale").results()}
    rows = []
    runs = read_recipe(ROOT / "recipes" / "tuning-rates.toml").runs
    for name in dict.fromkeys(run.dataset for run in runs):
        mine = [run for run in runs if run.dataset == name]
        for learner in dict.fromkeys(run.learner for run in mine):
            found = [results[run.id] for run in mine if run.learner == learner
                     and run.id in results]  # fmt: skip
            if len(found) == sum(run.learner == learner for run in mine):
                rows.append([name.removeprefix("folder:"), f"`{learner}`", *_row(found)])
    if not rows:
        return "No method has all its trials yet."
    head = ["data", "method", "clipped at 1", "not clipped", "class-instance", "iid", "trials"]
    return table(head, rows)


def _row(found: list[Result]) -> list[str]:
    trials: Trials = defaultdict(list)
    for r in found:
        trials[tuple(sorted(r.run.settings.items()))].append(r.mu_all)
    means = {key: statistics.mean(mus) for key, mus in trials.items()}
    best = max(means, key=means.__getitem__)
    taken = {r.run.order: f"{r.mu_all:.3f}" for r in found
             if tuple(sorted(r.run.settings.items())) == best}  # fmt: skip
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
