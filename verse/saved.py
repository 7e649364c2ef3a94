"""Reading a saved classifier: what it was made of, and whether it can go on exactly here."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from verse import build, checkpoint
from verse.backbones import Backbone
from verse.configuration import Configuration
from verse.labels import Labels
from verse.types import BadState


class NotExact(UserWarning):
    """A loaded classifier is correct, but its bits may differ from those on the other machine."""


@dataclass(frozen=True, slots=True)
class SavedClassifier:
    """What a file holds, with the backbone that it was taught with built again.

    Parameters
    ----------
    configuration
        What it is made of.
    backbone
        The one it was taught with, built again.
    tensors
        Everything learned.
    spec
        The rest: labels, identity of G, threshold.
    """

    configuration: Configuration
    backbone: Backbone
    tensors: dict[str, Tensor]
    spec: Mapping[str, Any]


def read_saved(
    path: str | Path, backbone: Backbone | None, learner: str | None, **changes: Any
) -> SavedClassifier:
    """The file that ``StreamClassifier.save`` wrote; warns of whatever makes going on inexact.

    ``changes`` are options of the backbone by their names; ``learner`` is the dotted path of a
    learner of your own, which a file never chooses.
    """
    if Path(path).is_dir():
        raise BadState(f"{path} is a folder: open it with verse.open")
    tensors, document = checkpoint.read(path)
    changed = checkpoint.differences(document["circumstances"])
    if changed:
        warnings.warn(f"not exact: {'; '.join(changed)}", NotExact, stacklevel=3)
    spec = document["spec"]
    saved = build.read_configuration(spec, learner)
    chosen = build.rebuild_backbone(saved, backbone, **changes)
    if chosen.key != spec.get("G"):
        raise build.other_backbone("this classifier", saved)
    for change in build.changes_of(saved, chosen):
        warnings.warn(f"not exact: {change}", NotExact, stacklevel=3)
    return SavedClassifier(saved, chosen, tensors, spec)


def read_labels(spec: Mapping[str, Any]) -> tuple[list[int], Labels]:
    """Numbers and labels of the classes that a saved classifier has, in order.

    >>> numbers, labels = read_labels({"known": [("cup", 1), ("mug", 0)]})
    >>> numbers, labels.names
    ([0, 1], ('mug', 'cup'))
    """
    try:
        known = sorted((int(number), label) for label, number in spec["known"])
        return [number for number, _ in known], Labels(label for _, label in known)
    except KeyError as error:
        raise BadState(f"the saved classifier lacks {error}: it is damaged") from error
    except (TypeError, ValueError) as error:
        raise BadState(f"the labels of the saved classifier are damaged: {error}") from error
