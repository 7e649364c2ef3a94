"""The methods, one file each. The namespace is the registry: lookup is by a learner's name.

Belongs here: one method per file, with its equation, citation and settings. Does not belong here:
code that several methods share (``shared``), networks (``verse.network``), formulas
(``verse.kernels``).

Third parties name theirs by a dotted path ("package.module.Class") or register it under the
entry-point group ``verse.learners``.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from verse.learners.agem import AGEM
from verse.learners.base import Learner
from verse.learners.basil import BaSiL
from verse.learners.clser import CLSER
from verse.learners.der import DER
from verse.learners.er_ace import ERACE
from verse.learners.ewcpp import EWCPP
from verse.learners.exstream import ExStream
from verse.learners.fecam import FeCAM
from verse.learners.fine_tune import FineTune
from verse.learners.gdumb import GDumb
from verse.learners.gem import GEM
from verse.learners.icarl import ICaRL
from verse.learners.klda import KLDA
from verse.learners.lamaml import LaMAML
from verse.learners.lwf import LwF
from verse.learners.mas import MAS
from verse.learners.mir import MIR
from verse.learners.ncm import NCM
from verse.learners.offline import Offline
from verse.learners.ranpac import RanPAC
from verse.learners.remind import REMIND
from verse.learners.replay import TinyER
from verse.learners.ridge import Ridge
from verse.learners.scr import SCR
from verse.learners.si import SI
from verse.learners.slda import SLDA
from verse.learners.traits import Traits
from verse.learners.variants import VARIANTS, Variant
from verse.learners.vcl import VCL
from verse.learners.verse import VERSE
from verse.learners.verse_joint import VERSEJoint
from verse.learners.verse_lda import VERSELDA
from verse.learners.verse_new_sample import VERSENewSample
from verse.memory.base import Memory
from verse.network.plastic import Plastic
from verse.settings import Value, refuse_unknown
from verse.settings import json_schema as _schema_of
from verse.settings import parse_settings as _bind
from verse.settings import properties as _properties
from verse.suggestions import suggest
from verse.types import BadSetting

__all__ = [
    "AGEM",
    "CLSER",
    "DER",
    "ERACE",
    "EWCPP",
    "GEM",
    "KLDA",
    "MAS",
    "MIR",
    "NCM",
    "REMIND",
    "SCR",
    "SI",
    "SLDA",
    "VCL",
    "VERSE",
    "VERSEJoint",
    "VERSELDA",
    "BaSiL",
    "ExStream",
    "FeCAM",
    "FineTune",
    "GDumb",
    "ICaRL",
    "LaMAML",
    "Learner",
    "LwF",
    "Offline",
    "RanPAC",
    "Ridge",
    "TinyER",
    "Traits",
    "VERSENewSample",
    "bind",
    "build",
    "defaults",
    "get",
    "names",
    "schema",
    "settings",
    "trust",
]

Factory = type[Learner] | Variant

_CLASSES: tuple[type[Learner], ...] = (
    VERSE,
    VERSEJoint,
    VERSELDA,
    VERSENewSample,
    FineTune,
    TinyER,
    ERACE,
    MIR,
    SCR,
    DER,
    CLSER,
    GDumb,
    LaMAML,
    ICaRL,
    BaSiL,
    EWCPP,
    MAS,
    SI,
    LwF,
    GEM,
    AGEM,
    VCL,
    ExStream,
    REMIND,
    SLDA,
    NCM,
    Ridge,
    RanPAC,
    KLDA,
    FeCAM,
    Offline,
)
# Published results name them, and are read with the settings that they had.
REMOVED: dict[str, dict[str, Value]] = {"slda-quarters": {"shrinkage": 0.1, "temperature": 0.3}}
_LEARNERS: dict[str, Factory] = {learner.name: learner for learner in _CLASSES}
_LEARNERS |= {variant.name: variant for variant in VARIANTS}


_trusted: dict[str, Factory] = {}  # dotted path → what it named


def names() -> list[str]:
    """All learners that come with the package.

    >>> "verse" in names()
    True
    """
    return list(_LEARNERS)


def get(name: str) -> Factory:
    """The learner of that name; an unknown name suggests the nearest.

    A name may come from a file, so only installed learners are imported: those of this package,
    those of entry points, and those that ``trust`` was called with in this process.
    """
    if name in _LEARNERS:
        return _LEARNERS[name]
    if name in REMOVED:
        raise BadSetting(f"the learner {name!r} was removed: take slda with features=grid")
    if name in _trusted:
        return _trusted[name]
    for entry in entry_points(group="verse.learners", name=name):
        found: Factory = entry.load()
        return found
    if "." in name:
        raise BadSetting(
            f"the learner {name!r} is none of this package; if you trust its code, name it "
            f"yourself: learner={name!r}, --learner {name}"
        )
    raise BadSetting(f"unknown learner {name!r}; {suggest(name, _LEARNERS)}")


def is_installed(name: str) -> bool:
    """Whether it is a learner of verse, or of an installed package that offers it by this name.

    >>> is_installed("verse"), is_installed("os.system")
    (True, False)
    """
    return name in _LEARNERS or bool(entry_points(group="verse.learners", name=name))


def trust(name: str) -> Factory:
    """The same for what a person typed: a dotted path ("package.module.Class") is imported, and
    known to ``get`` by that name from then on."""
    if name not in _trusted and "." in name and not is_installed(name):
        module, _, attribute = name.rpartition(".")
        try:
            _trusted[name] = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            raise BadSetting(f"cannot import the learner {name!r}: {error}") from error
    return get(name)


def settings(name: str) -> Mapping[str, inspect.Parameter]:
    """The keyword arguments a learner takes: its constructor's signature, nothing else."""
    return _keywords(_call(get(name)))


@cache
def _keywords(call: Callable[..., Learner]) -> Mapping[str, inspect.Parameter]:
    parameters = inspect.signature(call).parameters
    return MappingProxyType(
        {k: p for k, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    )


def schema(name: str) -> dict[str, Any]:
    """The same as JSON schema, for the service, recipes and documentation alike.

    >>> schema("verse")["properties"]["gamma"]["maximum"]
    1
    """
    return _schema_of(name, _call(get(name)))


def bind(name: str, given: Mapping[str, Any]) -> dict[str, Value]:
    """Settings from text or a recipe, with the types and in the ranges that the schema declares.

    >>> bind("verse", {"beta": "0.03", "clip": "none", "C": 8})
    {'C': 8, 'beta': 0.03, 'clip': None}
    >>> bind("verse", {"gamma": 1.5})
    Traceback (most recent call last):
    verse.types.BadSetting: verse: gamma must be in [0, 1], not 1.5
    """
    if name in REMOVED:
        return dict(given)
    return _bind(name, given, _properties(_call(get(name))))


def defaults(name: str) -> dict[str, Value]:
    """The settings a learner has when none is given.

    >>> defaults("fine-tune")
    {'lr': 0.01, 'clip': 1.0}
    """
    if name in REMOVED:
        return dict(REMOVED[name])
    return {k: p.default for k, p in settings(name).items() if k != "seed"}


def _call(factory: Factory) -> Callable[..., Learner]:
    return factory if isinstance(factory, type) else factory.make


def build(name: str, F: Plastic, memory: Memory, **given: Any) -> Learner:
    """A learner by name; an unknown setting is an error that names the valid ones."""
    refuse_unknown(name, given, settings(name))
    return _call(get(name))(F, memory, **given)
