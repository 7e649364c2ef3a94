"""What a directory was begun with, and whether what is asked for now fits it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

from verse import backbones, checkpoint
from verse.backbones import Backbone
from verse.classifier import NotExact, StreamClassifier, settings_in_force
from verse.durable.errors import JournalFull
from verse.durable.journal import Journal
from verse.types import BadSetting, BadState

REMEMBERED = ("learner", "settings", "memory", "capacity", "per_class", "byte_limit",
              "memory_dtype", "seed")  # fmt: skip


class Options(TypedDict, total=False):
    """What a new directory takes from ``StreamClassifier``, and an existing one remembers."""

    at: str | None
    weights: str | Path | None
    learner: str
    settings: Mapping[str, Any] | None
    memory: str
    capacity: int | None
    per_class: int | None
    byte_limit: int | None
    memory_dtype: str
    precision: str
    seed: int


def refuse_unknown(options: Options) -> None:
    """A misspelt option is an error that names the valid ones."""
    for unknown in sorted(set(options) - set(Options.__annotations__)):
        known = ", ".join(Options.__annotations__)
        raise BadSetting(f"no option {unknown!r}; there are {known}")


def refuse_different(
    path: Path, saved: Mapping[str, Any], options: Options, *, reread: bool
) -> None:
    """An option that differs from what the directory was begun with is an error; so is one of the
    learner's settings, of which those that are not given do not count."""
    movable = {"weights", "at", "precision"} if reread else {"weights"}
    given: dict[str, Any] = {name: v for name, v in options.items() if name not in movable}
    remembered = dict(saved)
    if "settings" in given:
        given["settings"] = dict(given["settings"] or {})
        begun = settings_in_force(saved["learner"], saved["settings"])
        remembered["settings"] = {k: v for k, v in begun.items() if k in given["settings"]}
    for name, value in given.items():
        if remembered[name] != value:
            raise BadSetting(
                f"{path} was begun with {name}={remembered[name]!r}, not {value!r}: leave the "
                "option out, or begin another directory"
            )


def remembered_backbone(
    path: Path,
    saved: Mapping[str, Any],
    backbone: str | Backbone | None,
    threads: int | None,
    options: Options,
    *,
    reread: bool,
) -> Backbone:
    """The backbone that features in the directory came from; another one is an error, unless
    kept images may be read again."""
    if not isinstance(backbone, Backbone):
        if backbone is None and saved["backbone"] not in backbones.names():
            raise BadSetting(
                f"{path} was taught with the backbone {saved['backbone']!r}, which is not "
                "built by name: hand it over as backbone=…"
            )
        same = backbone in (None, saved["backbone"])
        backbone = backbones.build(
            backbone or saved["backbone"],
            at=options.get("at", saved["at"] if same else None),
            weights=options.get("weights", saved["weights"] if same else None),
            precision=options.get("precision", saved["precision"]),
            batchnorm=saved.get("batchnorm", "frozen"),  # absent in directories of before
            threads=threads,
        )
    if backbone.key != saved["G"]:
        if not reread:
            way_out = "; reread=True teaches it anew from the kept images"
            raise BadState(
                f"{path} was taught with another backbone ({saved['backbone']} at "
                f"{saved['at']}, or other weights): its features do not fit"
                f"{way_out if saved['keep_images'] else ''}"
            )
        if not saved["keep_images"]:
            raise BadState("no images were kept, so they cannot be read again")
    return backbone


def twin(classifier: StreamClassifier) -> StreamClassifier:
    """A classifier of the same settings that has learned nothing; it is not on disk."""
    spec = classifier.spec()
    arguments: dict[str, Any] = {name: spec[name] for name in REMEMBERED}
    return StreamClassifier(backbone=classifier.backbone, **arguments)


def note_settings(journal: Journal, settings: Mapping[str, Any]) -> None:
    """Write down all settings in force where a version of before wrote those that were given."""
    saved = journal.meta("options")
    if saved["settings"] != settings:
        with suppress(JournalFull):  # then at the next opening
            journal.set_meta("options", {**saved, "settings": settings})


def note_circumstances(journal: Journal) -> None:
    """Write down versions and threads; warn whoever opened it if they are not those of before."""
    saved, now = journal.meta("circumstances"), checkpoint.circumstances()
    if saved is not None and checkpoint.differences(saved):
        changed = "; ".join(checkpoint.differences(saved))
        warnings.warn(f"not exact: {changed}", NotExact, stacklevel=5)
    if saved != now:
        journal.set_meta("circumstances", now)
