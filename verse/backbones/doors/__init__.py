"""Backbones from outside, each by its door: ``timm:NAME``, ``hf:ORG/NAME``, ``onnx:FILE``.

Belongs here: code that turns a model of another library into a ``Backbone``. Does not belong
here: networks of this project, and what all backbones need.
"""

from __future__ import annotations

from pathlib import Path

from verse.backbones.base import Backbone
from verse.backbones.doors.address import Address
from verse.backbones.doors.module import Setup
from verse.types import BadSetting

__all__ = ["DOORS", "Setup", "build", "describe", "is_door"]

DOORS = {
    "timm": ("timm:NAME", "Any model of timm, with its own weights (extra timm)."),
    "hf": ("hf:ORG/NAME", "A vision model of transformers, or a folder (extra transformers)."),
    "onnx": ("onnx:FILE", "A feature extractor of yours in an ONNX file."),
}


def describe() -> dict[str, str]:
    """How each kind is named, and one line about it.

    >>> describe()["onnx:FILE"]
    'A feature extractor of yours in an ONNX file.'
    """
    return dict(DOORS.values())


def is_door(name: str) -> bool:
    """Does a backbone's name lead outside?

    >>> is_door("onnx:my.onnx"), is_door("resnet18")
    (True, False)
    """
    return name.partition(":")[0] in DOORS and ":" in name


def build(name: str, weights: str | Path | None, setup: Setup) -> Backbone:
    """The backbone behind a name with a door."""
    address = Address.parse(name)
    if address.kind == "timm":
        from verse.backbones.doors import timm_model

        return timm_model.build(address, weights, setup)
    if address.kind == "hf":
        from verse.backbones.doors import hugging_face

        return hugging_face.build(address, weights, setup)
    from verse.backbones.doors import onnx_file

    if weights is not None:
        raise BadSetting("an ONNX file holds its weights: leave weights out")
    return onnx_file.build(address, setup)
