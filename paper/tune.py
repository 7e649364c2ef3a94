"""Tuning in two stages, without looking at a test video.

The first (``recipes/tuning-rates.toml``; for methods that run on the short sets only
``tuning-rates-short.toml``) gives every method that descends the same rates, with and without
clipping. ``edges`` goes on where the best rate, or the number of a closed form, is the largest or
smallest that was tried; ``knobs`` writes the second stage, three other values of what matters to a
method beside the best of the first, with three seeds; ``tuned`` writes its best settings into the
recipe of the comparison. ``beyond`` tries one more value where the second stage chose the
largest or smallest::

    python -m paper.tune edges asl   # writes recipes/tuning-edges-asl.toml; empty when it is done
    python -m paper.tune knobs asl   # writes recipes/tuning-knobs-asl.toml
    python -m paper.tune tuned asl   # writes the table [tuned] of recipes/scale-asl.toml
    python -m paper.tune beyond asl  # writes recipes/tuning-beyond-asl.toml
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verse.experiments.recipe import parse, read_recipe
from verse.experiments.result import Result
from verse.experiments.run import Run
from verse.experiments.store import Store
from verse.learners import defaults
from verse.reports.tuning import Choice, choose_settings, fragment

RECIPES = Path("recipes")
RATES = RECIPES / "tuning-rates.toml"
SHORT = RECIPES / "tuning-rates-short.toml"  # methods that run on the short sets only
SMALLEST, LARGEST = 0.001, 10.0  # beyond these nobody would look
NUMBERS = ("ridge", "shrinkage", "gamma")  # of closed forms
SEEDS = [100, 101, 102]
Settings = dict[str, Any]

# Method → what the second stage tries beside the best of the first; a number that begins with × is
# times what was chosen. Those that have nothing else to choose take the next best of the first.
KNOBS: dict[str, list[Settings]] = {
    "verse": [{"alpha": "×0.5"}, {"alpha": "×2"}, {"lam": 0.03}],
    "tinyer": [],
    "fine-tune": [],
    "derpp": [{"beta": 0.5}, {"beta": 4.0}, {"beta": 4.0, "alpha": 0.5}],
    "er-ace": [{"recent": 2}, {"recent": 5}, {"recent": 20}],
    "cls-er": [{"stable_decay": 0.9}, {"stable_decay": 0.999}, {"lam": 0.5}],
    "exstream": [{"batch": 16}, {"batch": 32}, {"batch": 128}],
    "remind": [{"C": 50}, {"mixup": 0.0}, {"mixup": 0.4}],
}
FOLLOW = {
    "verse-no-virtual": ("verse", ("alpha",)),
    "verse-new-sample": ("verse", ()),
    "tinyer-c48": ("tinyer", ()),
    "tinyer-2step": ("tinyer", ()),
}
"""Controls of a method → whose settings they take, and without which: they differ in one thing."""
OTHERS = 3


def common(name: str) -> Settings:
    """The lines of the first stage that hold for a data set, without its trials."""
    table = tomllib.loads(RATES.read_text(encoding="utf-8"))
    data = next(each for each in table["datasets"] if each["name"] == f"folder:{name}")
    kept = {k: table[k] for k in ("orders", "capacities", "steps", "offline")}
    return kept | {"datasets": [data]}


def first_stage(name: str, results: Mapping[str, Result]) -> list[Run]:
    """The finished runs of the first stage on a data set, edges among them."""
    every = [run for recipe in (RATES, SHORT) for run in read_recipe(recipe).runs]
    runs = [run for run in every if run.dataset == f"folder:{name}"]
    edges = RECIPES / f"tuning-edges-{name}.toml"
    if edges.exists():
        runs += read_recipe(edges).runs
    return [run for run in runs if run.id in results]


def rate_of(settings: Mapping[str, Any]) -> float | None:
    """The rate among settings, whatever its name."""
    found = settings.get("beta" if "alpha" in settings and "lr" not in settings else "lr")
    return None if found is None else float(found)


def number_of(settings: Mapping[str, Any]) -> tuple[tuple[str, ...], float] | None:
    """The rate, or the number of a closed form: how it is called, and its value.

    >>> number_of({"lr": 0.1}), number_of({"features": "grid", "ridge": 1.0})
    ((('lr',), 0.1), (('ridge',), 1.0))
    """
    rate = rate_of(settings)
    if rate is not None:
        return (("lr",) if "lr" in settings else ("alpha", "beta")), rate
    name = next((name for name in NUMBERS if settings.get(name) is not None), None)
    return None if name is None else ((name,), float(settings[name]))


def edges(name: str, results: Mapping[str, Result]) -> list[tuple[str, Settings]]:
    """Trials beyond the edge, (learner, settings), for methods whose best number lies at one."""
    runs = first_stage(name, results)
    found = []
    for choice in choose_settings(runs, results):
        best = number_of(choice.settings)
        if best is None:
            continue
        names, value = best
        numbers = (number_of(run.settings) for run in runs if run.learner == choice.learner)
        tried = sorted({number[1] for number in numbers if number})
        largest = 1.0 if names == ("shrinkage",) else LARGEST
        further = [
            number
            for number, at in (
                (next_rate(tried[-1]), tried[-1]),
                (next_rate(tried[0], down=True), tried[0]),
            )
            if at == value and SMALLEST <= number <= largest
        ]
        clips: list[Settings] = (
            [{"clip": 1.0}, {"clip": None}] if "clip" in choice.settings else [{}]
        )
        for number in further:
            found += [
                (choice.learner, choice.settings | dict.fromkeys(names, number) | clip)
                for clip in clips
            ]
    return found


def next_rate(rate: float, *, down: bool = False) -> float:
    """The next of 1, 3, 10, 30, …

    >>> next_rate(0.3), next_rate(0.01, down=True)
    (1.0, 0.003)
    """
    digit = f"{rate:e}"[0]
    factor = {("1", False): 3, ("3", False): 10 / 3, ("1", True): 0.3, ("3", True): 1 / 3}
    return float(f"{rate * factor[digit, down]:.1g}")


def second_stage(name: str, results: Mapping[str, Result]) -> list[tuple[str, Settings]]:
    """The trials of the second stage: the best of the first, then the others."""
    runs = first_stage(name, results)
    found = []
    for choice in choose_settings(runs, results):
        if choice.learner not in KNOBS:
            continue
        trials = [choice.settings]
        for knob in KNOBS[choice.learner]:
            trials.append(
                choice.settings | {k: scaled(choice.settings, k, v) for k, v in knob.items()}
            )
        for settings in ranked(choice.learner, runs, results):
            if len(trials) < 1 + OTHERS and settings not in trials:
                trials.append(settings)
        found += [(choice.learner, settings) for settings in trials]
    return found


def edges_of(choice: Choice, runs: Sequence[Run]) -> dict[str, list[float]]:
    """The settings of the second stage whose chosen value is the largest or smallest that was
    tried: name → what was tried, the chosen one last."""
    own = {name for knob in KNOBS.get(choice.learner, ()) for name in knob}
    usual = defaults(choice.learner)  # a trial that leaves a setting out has tried its default
    found = {}
    for name in own & set(choice.settings):
        value = choice.settings[name]
        mine = (run.settings for run in runs if run.learner == choice.learner)
        values = {settings.get(name, usual.get(name)) for settings in mine}
        tried = sorted(each for each in values if isinstance(each, int | float))
        # nothing lies beyond 0, which leaves a part out
        if value and len(tried) > 1 and value in (tried[0], tried[-1]):
            found[name] = tried if value == tried[-1] else tried[::-1]
    return found


def beyond(name: str, results: Mapping[str, Result]) -> list[tuple[str, Settings]]:
    """One trial for each setting of the second stage that was chosen at an edge: one step on."""
    runs = read_recipe(RECIPES / f"tuning-knobs-{name}.toml").runs
    return [
        (choice.learner, choice.settings | {setting: one_step_on(setting, tried)})
        for choice in choose_settings(runs, results)
        for setting, tried in sorted(edges_of(choice, runs).items())
    ]


def one_step_on(setting: str, tried: Sequence[float]) -> float:
    """The value after the last of ``tried``: as many times as large as that is of the one before.

    Of a decay the distance to 1 counts, at most half; whole numbers stay whole.

    >>> one_step_on("beta", [0.5, 1.0, 4.0]), one_step_on("recent", [20, 10, 5, 2])
    (16.0, 1)
    >>> one_step_on("stable_decay", [0.999, 0.99, 0.9])
    0.5
    """
    before, last = tried[-2:]
    if setting.endswith("decay"):
        return round(1 - min(0.5, (1 - last) ** 2 / (1 - before)), 6)
    if all(isinstance(value, int) for value in tried):
        return max(1, round(last * last / before))
    return float(f"{last * last / before:.4g}")


def scaled(settings: Mapping[str, Any], key: str, value: Any) -> Any:
    """A knob's value: itself, or times what was chosen."""
    if isinstance(value, str) and value.startswith("×"):
        return float(f"{settings[key] * float(value[1:]):.6g}")
    return value


def ranked(learner: str, runs: Sequence[Run], results: Mapping[str, Result]) -> list[Settings]:
    """All settings that were tried, the best first."""
    by: dict[str, list[float]] = {}
    for run in runs:
        if run.learner == learner:
            key = json.dumps(dict(run.settings), sort_keys=True)
            by.setdefault(key, []).append(results[run.id].mu_all)
    most = max(map(len, by.values()))
    means = {key: sum(mu) / len(mu) for key, mu in by.items() if len(mu) == most}
    return [json.loads(key) for key in sorted(means, key=means.__getitem__, reverse=True)]


def document(title: str, name: str, trials: Sequence[tuple[str, Settings]], seeds: Any) -> str:
    """A recipe of these trials."""
    lines = [f'title = "{title}"', "# written by python -m paper.tune from the results of before"]
    for key, value in (common(name) | {"seeds": seeds}).items():
        lines.append(f"{key} = {toml(value)}")
    lines.append("learners = [")
    lines += [
        f"    {{name = {toml(learner)}, settings = {toml(settings)}}},"
        for learner, settings in trials
    ]
    return "\n".join([*lines, "]", ""])


def toml(value: Any) -> str:
    """A value as TOML in one line.

    >>> toml({"lr": 0.1, "clip": None})
    '{lr = 0.1, clip = "none"}'
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if value is None:
        return '"none"'
    return json.dumps(value)


def tuned(name: str, results: Mapping[str, Result]) -> str:
    """The table [tuned]: of the second stage, of the first for those that have no second."""
    knobs = [
        run for run in read_recipe(RECIPES / f"tuning-knobs-{name}.toml").runs if run.id in results
    ]
    late = {run.learner for run in knobs}
    rest = [run for run in first_stage(name, results) if run.learner not in late]
    choices = choose_settings([*knobs, *rest], results)
    by = {choice.learner: choice for choice in choices}
    for follower, (leader, without) in FOLLOW.items():
        if leader in by:
            of = by[leader]
            settings = {k: v for k, v in of.settings.items() if k not in without}
            choices.append(Choice(of.dataset, follower, settings, of.mu, 0, of.runs, of.worst))
    return re.sub(r"  # μ_all [\d.]+, best of 0 trials.*", "  # as its method", fragment(choices))


def write_tuned(recipe: Path, name: str, table: str) -> None:
    """Put the table at the end of a recipe, in place of what stands there."""
    text = recipe.read_text(encoding="utf-8")
    head = text.partition("\n# tuned:")[0].rstrip("\n")
    note = f"# tuned: {name}, chosen on validation videos by python -m paper.tune\n"
    recipe.write_text(f"{head}\n\n{note}{table}\n", encoding="utf-8")
    parse(recipe.read_text(encoding="utf-8"), recipe.stem)  # must be a recipe


def main(what: str, name: str) -> None:
    """Write one of the four."""
    results = {result.id: result for result in Store(Path("results/tuning")).results()}
    if what == "tuned":
        table = tuned(name, results)
        for recipe in sorted(RECIPES.glob("*.toml")):
            if f"\n# tuned: {name}," in recipe.read_text(encoding="utf-8"):
                write_tuned(recipe, name, table)
        return
    find = {"edges": edges, "knobs": second_stage, "beyond": beyond}[what]
    trials, seeds = find(name, results), [100] if what == "edges" else SEEDS
    file = RECIPES / f"tuning-{what}-{name}.toml"
    if what == "edges" and file.exists():  # all edges so far stay
        before = [(run.learner, dict(run.settings)) for run in read_recipe(file).runs]
        kept = [pair for n, pair in enumerate(before) if pair not in before[:n]]
        trials = kept + [pair for pair in trials if pair not in kept]
        if trials == kept:
            return
    if trials:
        title = {
            "edges": "Tuning, first stage: beyond the edges",
            "knobs": "Tuning, second stage: what else matters",
            "beyond": "Tuning, second stage: beyond the edges",
        }[what]
        file.write_text(document(f"{title}, {name}", name, trials, seeds), encoding="utf-8")
        print(f"{file}: {len(trials)} trials")


if __name__ == "__main__":
    main(*sys.argv[1:])
