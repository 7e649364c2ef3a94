"""From a configuration to its parts: the backbone, the replay buffer and the learner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from verse import backbones, learners, memory
from verse.backbones import Backbone, Plastic
from verse.configuration import Configuration, Options
from verse.learners import Learner
from verse.memory.budget import budget
from verse.settings import JSON_NAMES
from verse.types import BadSetting, BadState


def configure(
    configuration: Configuration | None, backbone: str | Backbone | None, options: Options
) -> Configuration:
    """One record of what was given in two ways."""
    if not isinstance(configuration, Configuration | None):
        raise BadSetting("give a Configuration, or the options by their names: learner=…, seed=…")
    chosen = (configuration or Configuration()).with_options(options)
    learners.trust(chosen.learner)
    if isinstance(backbone, str):
        return chosen.with_options({"backbone": backbone})
    if isinstance(backbone, Backbone):
        for name in ("at", "weights", "precision", "batchnorm"):
            if options.get(name) is not None:
                raise BadSetting(
                    f"{name} belongs to a backbone by name; yours is built already: leave it out"
                )
    return chosen


def build_backbone(configuration: Configuration) -> Backbone:
    """The pretrained network, cut where the configuration says."""
    return backbones.build(
        configuration.backbone,
        at=configuration.at,
        weights=configuration.weights,
        precision=configuration.precision,
        batchnorm=configuration.batchnorm,
        threads=configuration.threads,
        device=configuration.device,
    )


def build_learner(configuration: Configuration, F: Plastic) -> Learner:
    """The learner with its replay buffer, having learned nothing."""
    c = configuration
    limits = budget(c.capacity, per_class=c.per_class, byte_limit=c.byte_limit)
    buffer = memory.get(c.memory)(**limits, dtype=c.memory_dtype, seed=c.seed)
    return learners.build(c.learner, F, buffer, seed=c.seed, **c.settings)


def complete(configuration: Configuration, backbone: Backbone) -> Configuration:
    """The configuration with nothing left open: what the backbone is, what the budget of the
    replay buffer means, and all settings in force.

    A default that changes later changes nothing that was saved before.
    """
    c = configuration
    return replace(
        c,
        **budget(c.capacity, per_class=c.per_class, byte_limit=c.byte_limit),
        backbone=backbone.name,
        at=backbone.at,
        precision=backbone.F.precision,
        batchnorm=backbone.F.batchnorm,
        settings=settings_in_force(c.learner, c.settings),
    )


def settings_in_force(learner: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings that a learner is built with but its seed: its defaults, and what was given.

    >>> settings_in_force("fine-tune", {"lr": 0.1})
    {'lr': 0.1, 'clip': 1.0}
    """
    known = learners.settings(learner).items()
    defaults = {name: setting.default for name, setting in known if name != "seed"}
    # a default that JSON has no word for (of a learner of your own) cannot be saved
    return {name: v for name, v in defaults.items() if type(v) in JSON_NAMES} | dict(given)


def read_configuration(document: Mapping[str, Any], learner: str | None = None) -> Configuration:
    """The configuration that a file holds. A file never decides which code is imported.

    ``learner`` is what the user named: a class of your own, by its dotted path, is taken from
    there alone.
    """
    saved = Configuration.from_document(document)
    if learner is not None:
        learners.trust(learner)
    try:
        learners.get(saved.learner)
    except BadSetting as error:
        raise BadState(
            f"it was taught with the learner {saved.learner!r}, which is none of this package: if "
            f"you trust that code, name it again, learner={saved.learner!r}"
        ) from error
    return saved


def rebuild_backbone(
    saved: Configuration, given: Backbone | None = None, **changes: Any
) -> Backbone:
    """The backbone that a saved classifier was taught with; ``changes`` are options by name.

    One that was not built by name must be handed over again.
    """
    if given is not None:
        return given
    if not backbones.exists(saved.backbone):
        raise BadState(
            f"this classifier was taught with a backbone of your own ({saved.backbone} at "
            f"{saved.at}): hand it over again, backbone=…"
        )
    return build_backbone(replace(saved, **changes))


def other_backbone(what: str, saved: Configuration) -> BadState:
    """The error for a backbone that is not the one a classifier was taught with."""
    return BadState(
        f"{what} was taught with another backbone ({saved.backbone} at {saved.at}, or other "
        "weights): its features do not fit"
    )


def changes_of(saved: Configuration, backbone: Backbone) -> list[str]:
    """What of F is not as it was, in words, so that going on is not exact."""
    now = {"precision": backbone.F.precision, "batchnorm": backbone.F.batchnorm}
    before = {name: getattr(saved, name) for name in now}
    return [f"{k} of F was {before[k]}, is {v}" for k, v in now.items() if before[k] != v]
