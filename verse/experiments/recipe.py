"""Recipes: a TOML file names the axes of a grid, and every combination of them is a run.

::

    title = "Replay against VERSE on my photos"
    datasets = ["folder:photos"]                 # or {name = "tabletop", options = {frames = 8}}
    orders = ["iid", "class-instance"]
    seeds = 5                                    # 0…4; or a list, or "10-19"
    capacities = ["4%", "20/class"]
    holdout = "last:3"                           # any field of a run, for all of them
    learners = [
        "verse",
        {name = "tinyer", settings = {C = 48}, seeds = 10},
        {name = "der", sweep = {lr = [0.003, 0.01, 0.03]}},
    ]

    [tuned]                                      # settings of a learner in all its runs
    verse = {r = 0.05}

The table of a learner may also have its own axes (orders, seeds, …) and any field of a run.

A recipe may come from anybody, so it chooses no code: what it names is looked up among what is
installed. A learner, data set or backbone of your own, named by its dotted path, must be allowed by
the caller (``verse compare --allow my_module.MyLearner``).
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from verse import backbones, learners
from verse.experiments.run import Run, check_types
from verse.suggestions import suggest
from verse.types import BadSetting

AXES = {
    "datasets": "dataset",
    "backbones": "backbone",
    "orders": "order",
    "memories": "memory",
    "capacities": "capacity",
    "seeds": "seed",
}
"""Axis → the field of a run that it goes through."""
WORDS = ("title", "description", "learners", "tuned")
FIELDS = tuple(f.name for f in fields(Run))
MOST_RUNS = 20_000
MOST_BYTES = 2**20
Table = dict[str, Any]


@dataclass(frozen=True)
class Recipe:
    """A named grid of runs.

    >>> recipe = parse('datasets = ["tabletop"]\\nlearners = ["verse", "ncm"]\\nseeds = 2', "mine")
    >>> [f"{run.learner} {run.seed}" for run in recipe.runs]
    ['verse 0', 'ncm 0', 'verse 1', 'ncm 1']
    """

    name: str
    title: str
    runs: tuple[Run, ...]


def read_recipe(path: Path, allow: Collection[str] = ()) -> Recipe:
    """The recipe in a file; ``allow`` names the code of your own that it may name."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise BadSetting(f"there is no recipe {path}") from None
    if len(content) > MOST_BYTES:
        raise BadSetting(f"{path} has more than {MOST_BYTES:,} bytes: it is no recipe")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BadSetting(f"{path} is not a text in UTF-8: it is no recipe") from None
    return parse(text, path.stem, allow)


def parse(text: str, name: str, allow: Collection[str] = ()) -> Recipe:
    """The recipe in a text: all runs, one of each, all learners of a seed before the next seed."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers too large for Python are ValueErrors
        raise BadSetting(f"recipe {name} is not valid TOML: {error}") from error
    try:
        _check_keys(table, (*WORDS, *AXES, *FIELDS), "a recipe")
        if not table.get("datasets") and "dataset" not in table:
            raise BadSetting('name the data sets: datasets = ["tabletop"]')
        if not table.get("learners"):
            raise BadSetting('name the learners: learners = ["verse", "tinyer"]')
        found = {run.id: run for run in _runs(table, allow)}  # two entries may mean the same run
    except BadSetting as error:
        raise BadSetting(f"recipe {name}: {error}") from error
    ordered = sorted(found.values(), key=lambda run: run.seed)  # stable: else as written
    return Recipe(name, str(table.get("title", name)), tuple(ordered))


def _runs(table: Table, allow: Collection[str]) -> Iterator[Run]:
    common = {key: value for key, value in table.items() if key in FIELDS}
    tuned = _check_tuned(table.get("tuned", {}), allow)
    if not isinstance(table["learners"], list):
        raise BadSetting(f"learners is a list, not {table['learners']!r:.80}")
    count = 0
    for entry in table["learners"]:
        own = _entry(entry, "learner")
        _check_keys(own, ("sweep", *AXES, *FIELDS), f"the learner {own['learner']!r:.80}")
        axes = [
            [_entry(value, field) for value in _values(axis, own.get(axis, table.get(axis)))]
            for axis, field in AXES.items()
            if own.get(axis, table.get(axis)) is not None
        ]
        fixed = {key: value for key, value in own.items() if key in FIELDS}
        sweep = _sweep(own.get("sweep", {}))
        count += math.prod(map(len, [*axes, *sweep.values()]))
        if count > MOST_RUNS:
            raise BadSetting(f"it names more than {MOST_RUNS:,} runs: make several recipes of it")
        for swept in itertools.product(*sweep.values()):
            for parts in itertools.product(*axes):
                document = dict(common)
                for part in parts:
                    document |= part
                # what a learner says itself goes before what its data set says
                document |= fixed
                refuse_code(document, allow)
                check_types(document)
                settings = tuned.get(own["learner"], {}) | own.get("settings", {})
                yield Run.load(
                    document | {"settings": settings | dict(zip(sweep, swept, strict=True))}
                )


def refuse_code(document: Table, allow: Collection[str]) -> None:
    """What a recipe names must be installed, or allowed by the person who runs it."""
    data, learner, backbone = (document.get(key) for key in ("dataset", "learner", "backbone"))
    for name, known in (
        (data.partition(":")[0] if isinstance(data, str) else None, False),
        (learner, isinstance(learner, str) and learners.is_installed(learner)),
        (backbone, isinstance(backbone, str) and backbones.exists(backbone)),
    ):
        if isinstance(name, str) and "." in name and not known and name not in allow:
            raise BadSetting(
                f"it names code that is not part of verse, {name!r:.80}: if you trust it, "
                f"allow it (verse compare --allow {name:.80})"
            )


def _entry(value: Any, field: str) -> Table:
    """An axis' value as fields of a run: a bare value, or a table whose ``name`` is the value."""
    if not isinstance(value, Mapping):
        return {field: value}
    table = dict(value)
    if "name" in table:
        table[field] = table.pop("name")
    if field not in table:
        raise BadSetting(f"a table of {field}s needs a name: {value!r:.80}")
    if field != "learner":
        _check_keys(table, FIELDS, f"a table of {field}s")
    return table


def _values(axis: str, given: Any) -> list[Any]:
    if axis == "seeds":
        return seeds(given)
    if not isinstance(given, list) or not given:
        raise BadSetting(f"{axis} is a list with at least one value, not {given!r:.80}")
    return given


def seeds(given: Any) -> list[int]:
    """How many (from 0), which ones, or a range in words.

    >>> seeds(2), seeds([7]), seeds("10-12")
    ([0, 1], [7], [10, 11, 12])
    """
    if isinstance(given, str) and (match := re.fullmatch(r"(\d{1,18})\s*-\s*(\d{1,18})", given)):
        first, last = int(match[1]), int(match[2])
        if first > last:
            raise BadSetting(f"seeds {given!r}: the first is above the last")
        return list(_few(range(first, last + 1)))
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return list(_few(range(given)))
    if isinstance(given, list) and given and all(type(seed) is int for seed in given):
        return given
    raise BadSetting(f'seeds is a number of them, a list, or "10-19", not {given!r:.80}')


def _few(found: range) -> range:
    if found[MOST_RUNS:]:
        raise BadSetting(f"seeds are at most {MOST_RUNS:,}")
    return found


def _sweep(axes: Any) -> dict[str, list[Any]]:
    """The settings that are gone through, each with its values."""
    if not isinstance(axes, dict) or not all(isinstance(v, list) and v for v in axes.values()):
        raise BadSetting(f"sweep is a table of settings with lists of values, not {axes!r:.80}")
    return axes


def _check_tuned(given: Any, allow: Collection[str]) -> dict[str, Table]:
    if not isinstance(given, dict) or not all(isinstance(v, dict) for v in given.values()):
        raise BadSetting("tuned is a table: learner = {setting = value}")
    for name in given:
        refuse_code({"learner": name}, allow)
        learners.trust(name)  # an unknown learner is an error
    return given


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    for key in table:
        if key not in known:
            raise BadSetting(f"{what} has no {key!r:.80}, {suggest(key, known)}")
