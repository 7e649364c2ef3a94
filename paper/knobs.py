"""The choices that are turned one at a time: their value in a cell, and what stays equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from verse.memory.budget import budget
from verse.reports.cells import CellKey, Results

EMA_LEVELS = ("no distillation", "teacher θ", "hard copy", "EMA")
Value = float | int | str
"""Of a knob."""


@dataclass(frozen=True)
class Knob:
    """One choice: its value in a cell, and what stays equal when it is turned."""

    name: str
    title: str
    value: Callable[[CellKey, Results], Value]
    bases: Callable[[CellKey, Collection[CellKey]], list[str]]  # the comparisons it belongs to
    metric: str  # "omega" or "mu", as in the paper's figure
    bars: bool = False
    reference: str | None = None
    """The value whose settings the others start from, where it takes several settings to turn."""
    meaning: str = ""
    """What the other values change."""
    named: tuple[str, str] | None = None
    """A setting of the reference that is told even where it is the default, and its symbol."""


def _base(key: CellKey, *names: str) -> str:
    """A cell without its ordering and without these settings."""
    left = {name: value for name, value in key.values.items() if name not in names}
    return repr(replace(key, settings=json.dumps(left, sort_keys=True), order=""))


def _weight(key: CellKey, _: Collection[CellKey]) -> list[str]:
    return [_base(key, "lam")] if "lam" in key.values else []


def _rate(key: CellKey, _: Collection[CellKey]) -> list[str]:
    """Where Φ is a copy of θ, r tells kinds of semantic memory apart: the knob ``ema``."""
    return [_base(key, "r")] if "r" in key.values and key.values.get("gamma") != 0 else []


def _capacity(key: CellKey, _: Collection[CellKey]) -> list[str]:
    """A budget a class grows with the stream, so it is compared with its own kind only."""
    fixed = budget(key.conditions.capacity, stream_length=1, classes=1)["capacity"] is not None
    kind = "fixed" if fixed else key.conditions.capacity.lstrip("0123456789.")
    return [_base(replace(key, conditions=replace(key.conditions, capacity=kind)))]


def _policy(key: CellKey, _: Collection[CellKey]) -> list[str]:
    return [_base(replace(key, conditions=replace(key.conditions, own_memory="")))]


def _ema(key: CellKey, everyone: Collection[CellKey]) -> list[str]:
    """The moving averages whose λ (and r, but for the teacher θ) this cell shares."""
    if not {"lam", "gamma", "r"} <= set(key.values):
        return []
    level, rest = ema_level(key), _base(key, "lam", "gamma", "r")
    found = []
    for other in everyone:
        if not {"lam", "gamma", "r"} <= set(other.values) or ema_level(other) != EMA_LEVELS[3]:
            continue
        same_lam = level == EMA_LEVELS[0] or other.values["lam"] == key.values["lam"]
        same_r = level in EMA_LEVELS[:2] or other.values["r"] == key.values["r"]
        same_gamma = level != EMA_LEVELS[3] or other.values["gamma"] == key.values["gamma"]
        if same_lam and same_r and same_gamma and _base(other, "lam", "gamma", "r") == rest:
            found.append(_base(other))
    return list(dict.fromkeys(found))


def ema_level(key: CellKey) -> str:
    """Which kind of teacher the settings mean."""
    values = key.values
    if values["lam"] == 0:
        return EMA_LEVELS[0]
    if values["gamma"] == 0:
        return EMA_LEVELS[1] if values["r"] == 1 else EMA_LEVELS[2]
    return EMA_LEVELS[3]


KNOBS = (
    Knob(
        "capacity",
        "Capacity of the memory (samples)",
        lambda _, runs: runs[0].capacity,
        _capacity,
        "omega",
    ),
    Knob("lam", "Weight λ of the distillation", lambda key, _: key.values["lam"], _weight, "omega"),
    Knob("r", "Acceptance rate r", lambda key, _: key.values["r"], _rate, "omega"),
    Knob(
        "ema",
        "Semantic memory",
        lambda key, _: ema_level(key),
        _ema,
        "mu",
        bars=True,
        reference=EMA_LEVELS[3],
        meaning="Hard copy: γ = 0; teacher θ: γ = 0 and r = 1; no distillation: λ = 0. ",
        named=("gamma", "γ"),
    ),
    Knob(
        "policy", "Replacement policy", lambda _, runs: runs[0].run.memory, _policy, "mu", bars=True
    ),
)
