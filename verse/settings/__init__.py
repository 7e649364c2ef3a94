"""What a setting means, which values it takes, and how it is read from text or a recipe.

Belongs here: rules for the settings of all learners. Does not belong here: the settings of one
method; they are in the signature of its constructor and nowhere else.
"""

from __future__ import annotations

from verse.settings.meaning import (
    BatchSize,
    Clip,
    Draws,
    DrawsOrNone,
    Momentum,
    Rate,
    Seed,
    WeightDecay,
    about,
    share,
)
from verse.settings.rules import (
    JSON_NAMES,
    Property,
    join_choices,
    keeps,
    kind_in_words,
    kinds,
    of_kind,
    refuse_unknown,
    rule,
)
from verse.settings.schema import (
    json_schema,
    list_parameters,
    properties,
    require,
    require_numbers,
    require_settings,
)
from verse.settings.text import Value, parse_settings

__all__ = [
    "about",
    "share",
    "Rate",
    "Draws",
    "DrawsOrNone",
    "Clip",
    "Momentum",
    "WeightDecay",
    "BatchSize",
    "Seed",
    "require",
    "require_numbers",
    "require_settings",
    "properties",
    "list_parameters",
    "json_schema",
    "parse_settings",
    "Value",
    "Property",
    "JSON_NAMES",
    "keeps",
    "kind_in_words",
    "kinds",
    "join_choices",
    "of_kind",
    "refuse_unknown",
    "rule",
]
