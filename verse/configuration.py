"""What a classifier is made of: one frozen record, from which everything else is built.

Here, and nowhere else, stand the options of a classifier, their defaults and what they may be.
Importing this file never imports torch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self, TypedDict

from verse.suggestions import find_similar
from verse.types import BadSetting, BadState

DEFAULT_LEARNER = "verse-joint"
DEFAULT_BACKBONE = "efficientnet-lite0"
DEFAULT_MEMORY = "class-balanced"
DEFAULT_CAPACITY = "32MB"

DEVICES = ("auto", "cpu", "cuda", "mps")

_TEXTS = ("backbone", "learner", "memory", "memory_dtype", "precision", "batchnorm", "device")
_COUNTS = ("per_class", "byte_limit", "threads")
_PLACE = ("weights", "threads", "device")  # where and how it runs, not what it is
_LATER = ("batchnorm", "threads", "device")  # what the documents of earlier versions lack


class Options(TypedDict, total=False):
    """The fields of ``Configuration`` as keyword arguments, the backbone excepted."""

    at: str | None
    weights: str | Path | None
    learner: str
    settings: Mapping[str, Any] | None
    memory: str
    capacity: int | str | None
    per_class: int | None
    byte_limit: int | None
    memory_dtype: str
    precision: str
    batchnorm: str
    threads: int | None
    seed: int
    device: str


@dataclass(frozen=True, repr=False)
class Configuration:
    """Everything that decides what a classifier is.

    ``StreamClassifier`` and ``verse.open`` take it, or build it from the same keywords.

    Parameters
    ----------
    backbone
        The pretrained network (``verse list backbones``).
    at
        The first layer that learns; None: the backbone's default.
    weights
        A file of pretrained weights, or "random"; None: the published ones.
    learner
        The method (``verse list learners``).
    settings
        Settings of the learner; those not given have the learner's defaults.
    memory
        The rule of the replay buffer (``verse list memories``).
    capacity
        The budget of the replay buffer: "3MB", "20 per class", or a number of samples.
    per_class
        Samples for each class, besides; a ``capacity`` in samples leaves no place for it.
    byte_limit
        Bytes that the replay buffer may take, besides.
    memory_dtype
        How features are stored: "float32", "float16" or "bfloat16".
    precision
        Of the network that learns: "float32", "bfloat16" or "auto".
    batchnorm
        In the network that learns: "frozen" or "train".
    threads
        Threads of the pretrained network; None: as many as torch uses.
    seed
        The random seed.
    device
        Where the networks compute: "cpu", "cuda", "mps", or "auto" for the first accelerator
        that is there.

    >>> Configuration(learner="derpp", seed=3)
    Configuration(learner='derpp', seed=3)
    >>> Configuration(seed=-1)
    Traceback (most recent call last):
    verse.types.BadSetting: seed must be a whole number of at least 0, not -1
    """

    backbone: str = DEFAULT_BACKBONE
    at: str | None = None
    weights: str | None = None
    learner: str = DEFAULT_LEARNER
    settings: Mapping[str, Any] = field(default_factory=dict)
    memory: str = DEFAULT_MEMORY
    capacity: int | str | None = DEFAULT_CAPACITY
    per_class: int | None = None
    byte_limit: int | None = None
    memory_dtype: str = "float32"
    precision: str = "float32"
    batchnorm: str = "frozen"
    threads: int | None = None
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        given: dict[str, object] = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in _TEXTS:
            if not isinstance(given[name], str) or not given[name]:
                raise BadSetting(f"{name} must be a name, not {given[name]!r}")
        if given["at"] is not None and not isinstance(given["at"], str):
            raise BadSetting(f"at must be the name of a layer, not {self.at!r}")
        if given["weights"] is not None:
            if not isinstance(given["weights"], str | os.PathLike):
                raise BadSetting(f"weights must be a path, not {self.weights!r}")
            self._set("weights", os.fspath(given["weights"]))
        settings = {} if given["settings"] is None else given["settings"]
        if not isinstance(settings, Mapping) or not all(isinstance(k, str) for k in settings):
            raise BadSetting(f"settings must be a table of names and values, not {settings!r}")
        self._set("settings", dict(settings))
        counts = _COUNTS if isinstance(self.capacity, str) else ("capacity", *_COUNTS)
        for name in counts:
            if getattr(self, name) is not None:
                self._set(name, _whole(name, getattr(self, name), least=1))
        self._set("seed", _whole("seed", self.seed, least=0))
        if self.device not in DEVICES:
            raise BadSetting(f"device {self.device!r}: use one of {', '.join(DEVICES)}")

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """The same but for these options; an unknown one is an error that names the valid ones.

        >>> Configuration().with_options({"lr": 0.1})
        Traceback (most recent call last):
        verse.types.BadSetting: there is no option 'lr': a setting of the learner goes into
        settings={'lr': …}; the options are backbone, at, weights, ...
        """
        known = [f.name for f in fields(self)]
        for name, value in options.items():
            if name not in known:
                near = find_similar(name, known)
                meant = f" (did you mean {near!r}?)" if near else ""
                raise BadSetting(
                    f"there is no option {name!r}{meant}: a setting of the learner goes into "
                    f"settings={{{name!r}: …}}; the options are {', '.join(known)}"
                )
            if name == "backbone" and not isinstance(value, str):
                raise BadSetting(f"backbone must be a name or a Backbone, not {value!r}")
        return replace(self, **options)

    # ---- comparing --------------------------------------------------------------------------

    def differs_from(self, asked: Configuration | Mapping[str, Any]) -> str | None:
        """A sentence about the first option that differs; None if there is none.

        Options that were not given are not compared (missing settings, ``at=None``,
        ``precision="auto"``), nor is where it runs (path of the weights, threads, device).

        >>> mine = Configuration(learner="derpp", settings={"lr": 0.02, "C": 16})
        >>> mine.differs_from({"learner": "derpp", "settings": {"C": 16}}) is None
        True
        >>> mine.differs_from({"settings": {"C": 8}})
        "it was begun with settings={'C': 16}, not {'C': 8}"
        """
        if isinstance(asked, Configuration):
            asked = {f.name: getattr(asked, f.name) for f in fields(asked)}
        for name, value in asked.items():
            mine: object = getattr(self, name)
            if name in _PLACE or (name, value) in (("at", None), ("precision", "auto")):
                continue
            if name == "settings":
                value = dict(value or {})
                mine = {key: v for key, v in self.settings.items() if key in value}
            if mine != value:
                return f"it was begun with {name}={mine!r}, not {value!r}"
        return None

    # ---- storing ----------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """As plain JSON, without what belongs to one machine (threads, device)."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        del found["threads"], found["device"]
        return found | {"settings": dict(self.settings)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """What ``document`` gave, also that of an earlier version; further keys do not matter.

        >>> Configuration.from_document(Configuration(seed=7).document() | {"more": 1})
        Configuration(seed=7)
        """
        names = [f.name for f in fields(cls)]
        if not isinstance(document, Mapping):
            raise BadState("the saved classifier is damaged: its configuration is none")
        for name in names:
            if name not in document and name not in _LATER:
                raise BadState(f"the saved classifier lacks {name!r}: it is damaged")
        try:
            return cls(**{name: document[name] for name in names if name in document})
        except (ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise BadState(f"the saved classifier is damaged: {error}") from error

    def __repr__(self) -> str:
        """What is not as by default."""
        usual = Configuration()
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        said = ", ".join(f"{name}={v!r}" for name, v in pairs if v != getattr(usual, name))
        return f"{type(self).__name__}({said})"


def _whole(name: str, value: object, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise BadSetting(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)
