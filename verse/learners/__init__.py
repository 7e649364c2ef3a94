"""The methods, one file each. The namespace is the registry: lookup is by a learner's name.

Third parties name theirs by a dotted path ("package.module.Class") or register it under the
entry-point group ``verse.learners``.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

from verse.backbones.plastic import Plastic
from verse.learners.agem import AGEM
from verse.learners.allowed import refuse_unknown
from verse.learners.base import Learner
from verse.learners.basil import BaSiL
from verse.learners.clser import CLSER
from verse.learners.der import DER
from verse.learners.ewcpp import EWCPP
from verse.learners.exstream import ExStream
from verse.learners.fine_tune import FineTune
from verse.learners.gdumb import GDumb
from verse.learners.gem import GEM
from verse.learners.icarl import ICaRL
from verse.learners.json_schema import schema as _schema_of
from verse.learners.lamaml import LaMAML
from verse.learners.lwf import LwF
from verse.learners.mas import MAS
from verse.learners.ncm import NCM
from verse.learners.offline import Offline
from verse.learners.remind import REMIND
from verse.learners.replay import TinyER
from verse.learners.si import SI
from verse.learners.slda import SLDA
from verse.learners.slda_quarters import SLDAQuarters
from verse.learners.traits import Traits
from verse.learners.variants import VARIANTS, Variant
from verse.learners.vcl import VCL
from verse.learners.verse import VERSE
from verse.learners.verse_lda import VERSELDA
from verse.learners.verse_new_sample import VERSENewSample
from verse.memory.base import Memory
from verse.types import BadSetting

__all__ = [
    "AGEM",
    "CLSER",
    "DER",
    "EWCPP",
    "GEM",
    "MAS",
    "NCM",
    "REMIND",
    "SI",
    "SLDA",
    "VCL",
    "VERSE",
    "VERSELDA",
    "BaSiL",
    "ExStream",
    "FineTune",
    "GDumb",
    "ICaRL",
    "LaMAML",
    "Learner",
    "LwF",
    "Offline",
    "SLDAQuarters",
    "TinyER",
    "Traits",
    "VERSENewSample",
    "build",
    "get",
    "names",
    "schema",
    "settings",
]

Factory = type[Learner] | Variant

_CLASSES: tuple[type[Learner], ...] = (
    VERSE,
    VERSELDA,
    VERSENewSample,
    FineTune,
    TinyER,
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
    SLDAQuarters,
    NCM,
    Offline,
)
_LEARNERS: dict[str, Factory] = {learner.name: learner for learner in _CLASSES}
_LEARNERS |= {variant.name: variant for variant in VARIANTS}


def names() -> list[str]:
    """All learners that come with the package.

    >>> "verse" in names()
    True
    """
    return list(_LEARNERS)


def get(name: str) -> Factory:
    """The learner of that name; an unknown name suggests the nearest."""
    if name in _LEARNERS:
        return _LEARNERS[name]
    for entry in entry_points(group="verse.learners", name=name):
        found: Factory = entry.load()
        return found
    if "." in name:
        module, _, attribute = name.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise BadSetting(f"cannot import the learner {name!r}: {error}") from error
        return found
    near = difflib.get_close_matches(name, _LEARNERS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_LEARNERS)}"
    raise BadSetting(f"unknown learner {name!r}{hint}")


def settings(name: str) -> Mapping[str, inspect.Parameter]:
    """The keyword arguments a learner takes: its constructor's signature, nothing else."""
    return {
        key: parameter
        for key, parameter in inspect.signature(_call(get(name))).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def schema(name: str) -> dict[str, Any]:
    """The same as JSON schema, for the service, recipes and documentation alike.

    >>> schema("verse")["properties"]["gamma"]["maximum"]
    1
    """
    return _schema_of(name, _call(get(name)))


def _call(factory: Factory) -> Callable[..., Learner]:
    return factory if isinstance(factory, type) else factory.make


def build(name: str, F: Plastic, memory: Memory, **given: Any) -> Learner:
    """A learner by name; an unknown setting is an error that names the valid ones."""
    refuse_unknown(name, given, settings(name))
    return _call(get(name))(F, memory, **given)
