"""What a run is: a frozen record of every choice that its numbers depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

from verse import backbones, memory, streams
from verse.backbones.precision import CHOICES
from verse.configuration import DEFAULT_BACKBONE, DEFAULT_LEARNER
from verse.features import DTYPES
from verse.learners import REMOVED, bind, defaults, trust
from verse.memory.budget import budget
from verse.network.plastic import BATCHNORMS
from verse.suggestions import suggest
from verse.types import BadSetting

VERSION = 1  # of the record: a change of meaning is a new number, and so new identities
FIRST_SPLITS = {"efficientnet-lite0": "head", "resnet18": "layer4.1"}
"""What a backbone's split was where none was named, in the first version of the record."""
LATER: dict[str, Any] = {"length": 0}
"""Fields that the first version did not have, with their defaults."""

# The paper's choice; it holds for every method with a memory.
_RULES = {
    "iid": "class-balanced",
    "class-iid": "class-balanced",
    "instance": "reservoir",
    "class-instance": "reservoir",
}


@dataclass(frozen=True)
class Run:
    """One learner over one stream. ``id`` is a hash of the record: equal choices, equal identity.

    Where files lie, how many threads work and whether features are cached is not part of it.

    Parameters
    ----------
    dataset
        Its name, or folder:PATH.
    learner
        The name of the method.
    order
        The ordering of the stream.
    seed
        Random seed of ordering and learner.
    options
        The data set loader's own keywords.
    holdout
        The rule that takes test videos.
    thin
        Every n-th frame of each video, training and test.
    validation
        A rule that takes validation videos out of training.
    backbone, at, weights
        The pretrained network, its split, its file of weights.
    features
        The type in which features are stored, on disk and in the memory: float16 takes half the
        bytes.
    precision, batchnorm
        Of F.
    settings
        Of the learner, by name.
    memory, capacity
        Rule and size of the replay buffer.
    length
        Frames of the stream; 0: all.
    every, steps
        The schedule of tests.
    offline
        Train the upper bound, too.
    fps, queue, step_seconds
        A camera in real time: see ``Camera``.
    prequential
        Ask before learning each frame.

    >>> run = Run("tabletop", learner="tinyer", order="iid")
    >>> run.memory, run.id == Run("tabletop", learner="tinyer", order="iid", seed=0).id
    ('class-balanced', True)
    """

    dataset: str
    learner: str = DEFAULT_LEARNER
    order: str = "class-instance"
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    """The data set loader's own keywords."""
    holdout: str | None = None
    thin: int = 1
    """Every n-th frame of each video, training and test."""
    validation: str | None = None
    """A split rule that takes validation videos out of training; test frames are not touched."""
    backbone: str = DEFAULT_BACKBONE
    at: str | None = ""
    """Where F begins; left out: the grid, or what a backbone of your own decides. None ("none" in
    a recipe) is what runs recorded before there was a grid mean: head, or layer4.1 of resnet18."""
    weights: str | None = None
    features: str = "float32"
    precision: str = "float32"
    batchnorm: str = "frozen"
    settings: Mapping[str, Any] = field(default_factory=dict)
    memory: str = ""
    """The slot rule; left out: the paper's choice for the ordering."""
    capacity: str = "4%"
    length: int = 0
    """Frames of the stream, spread evenly over it; 0: all. Test frames stay as they are."""
    every: int = 1
    steps: int = 10
    offline: bool = True
    fps: float | None = None
    queue: int = 0
    step_seconds: float | None = None
    prequential: bool = False

    def __post_init__(self) -> None:
        streams.check_ordering(self.order, self.seed)
        budget(self.capacity, stream_length=1, classes=1)
        _set(self, "memory", self.memory or _RULES[self.order])
        memory.get(self.memory)
        if self.learner not in REMOVED:  # those of published results are read only
            trust(self.learner)
        _set(self, "settings", MappingProxyType(bind(self.learner, self.settings)))
        _set(self, "options", MappingProxyType(dict(sorted(self.options.items()))))
        _one_of("precision", self.precision, CHOICES)
        _one_of("batchnorm", self.batchnorm, BATCHNORMS)
        _one_of("features", self.features, tuple(DTYPES))
        if not backbones.exists(self.backbone) and "." not in self.backbone:  # a dotted path
            _one_of("backbone", self.backbone, tuple(backbones.describe()))
        _set(self, "at", self._at())
        for name, least in (("thin", 1), ("every", 1), ("steps", 1), ("queue", 0), ("length", 0)):
            if getattr(self, name) < least:
                raise BadSetting(f"{name} is a whole number from {least}")
        if self.fps is not None and not 0 < self.fps < float("inf"):
            raise BadSetting(f"fps is a number above 0, not {self.fps}")
        if self.step_seconds is not None and not 0 <= self.step_seconds < float("inf"):
            raise BadSetting(f"step_seconds is a number from 0, not {self.step_seconds}")

    def _at(self) -> str | None:
        if self.at == "":
            return "grid" if backbones.exists(self.backbone) else None
        return None if self.at == "none" else self.at

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return {name: _plain(getattr(self, name)) for name in _field_kinds()}

    @classmethod
    def load(cls, document: Mapping[str, Any]) -> Run:
        """From a document or a recipe's table; an unknown key is an error.

        >>> Run.load({"dataset": "tabletop", "ordr": "iid"})
        Traceback (most recent call last):
        verse.types.BadSetting: a run has no 'ordr', did you mean 'order'?
        """
        known = _field_kinds()
        for key in document:
            if key not in known:
                raise BadSetting(f"a run has no {key!r}, {suggest(key, known)}")
        check_types(document)
        return cls(**document)

    @classmethod
    def from_record(cls, document: Mapping[str, Any]) -> Run:
        """From a result: taken as it is. A file must not choose code, so nothing is looked up."""
        run = object.__new__(cls)
        for name in (f.name for f in fields(cls)):
            value = document[name]
            _set(run, name, MappingProxyType(dict(value)) if isinstance(value, Mapping) else value)
        for name in ("dataset", "learner", "order", "backbone", "memory", "capacity"):
            if not isinstance(document[name], str):
                raise BadSetting(f"{name} is text, not {document[name]!r}")
        return run

    @property
    def own_memory(self) -> str:
        """The memory's rule where it is not the paper's choice for the ordering."""
        return "" if self.memory == _RULES.get(self.order) else self.memory

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits over the whole record, the learner's defaults included.

        So naming a default makes no other run, and a run of other defaults is not this one.
        """
        return identify(
            self.document() | {"settings": defaults(self.learner) | dict(self.settings)}
        )

    @property
    def name(self) -> str:
        """A file name for people: what it is, then the start of its identity."""
        data = self.dataset.rstrip("/").rpartition("/")[2].replace(":", "-")
        return f"{data}-{self.learner}-{self.order}-{self.seed}-{self.id[:8]}"


# annotation → (what may be given, in words)
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "str | None": ((str, type(None)), "text"),
    "int": ((int,), "a whole number"),
    "float | None": ((int, float, type(None)), "a number"),
    "bool": ((bool,), "true or false"),
    "Mapping[str, Any]": ((Mapping,), "a table"),
}


def check_types(document: Mapping[str, Any]) -> None:
    """Refuse a field that is not of its type, before anything computes with it.

    >>> check_types({"seed": "three"})
    Traceback (most recent call last):
    verse.types.BadSetting: seed is a whole number, not 'three'
    """
    for name, (kinds, words) in _field_kinds().items():
        if name not in document:
            continue
        value = document[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise BadSetting(f"{name} is {words}, not {value!r:.80}")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise BadSetting(f"{name} is too large: {value!r:.80}")
        if isinstance(value, Mapping):
            _check_table(name, value)


@cache
def _field_kinds() -> dict[str, tuple[tuple[type, ...], str]]:
    return {each.name: _KINDS[str(each.type)] for each in fields(Run)}


def _check_table(name: str, table: Mapping[str, Any]) -> None:
    """A record is JSON: a date, which TOML has, or a thousand brackets could not be kept."""
    for key, value in table.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            raise BadSetting(
                f"{name}: {key} is text, a number, or a list or table of these, not {value!s:.80}"
            ) from None


def identify(document: Mapping[str, Any]) -> str:
    """16 hexadecimal digits over a record that has all settings.

    The split that used to be the default is hashed as if it were not named, and a field that the
    first version did not have only where it is not its default: so older runs stay the same runs.
    """
    record = {k: v for k, v in document.items() if k not in LATER or v != LATER[k]}
    if record["at"] == FIRST_SPLITS.get(record["backbone"]):
        record["at"] = None
    return hash_record(record)


def hash_record(record: Mapping[str, Any]) -> str:
    """16 hexadecimal digits over a record as it stands."""
    text = json.dumps({"version": VERSION, **record}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _one_of(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise BadSetting(f"{what} {value!r}: {suggest(value, choices)}")


def _set(run: Run, name: str, value: object) -> None:
    object.__setattr__(run, name, value)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
