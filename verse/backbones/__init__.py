"""Pretrained networks in two parts: G, frozen, from images to features; F, plastic, behind it.

Belongs here: code that builds, runs and exports these networks, and that prepares images for
them. Does not belong here: anything that learns, and files of features or results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from verse.backbones import doors, efficientnet_lite, resnet18
from verse.backbones.base import Backbone, Extractor, Network, content_key, plastic
from verse.backbones.device import resolve_device
from verse.backbones.extractor import FrozenNetwork
from verse.backbones.identity import identity
from verse.backbones.onnx_export import export_features
from verse.backbones.preprocess import Normalise, Preprocess
from verse.backbones.split import split
from verse.configuration import DEFAULT_BACKBONE
from verse.network.plastic import Head, Plastic
from verse.types import BadSetting

__all__ = [
    "Backbone",
    "Extractor",
    "Head",
    "Plastic",
    "Preprocess",
    "build",
    "describe",
    "exists",
    "export_features",
    "identity",
    "names",
    "split",
]


@dataclass(frozen=True)
class _Family:
    build: Callable[[str, str | Path | None], Network]
    default_at: str
    first_default_at: str  # what "not named" meant before there was a grid
    what: str  # one line for people


_FAMILIES = {
    **{
        name: _Family(partial(efficientnet_lite.build, name), "grid", "head", variant.what)
        for name, variant in efficientnet_lite.VARIANTS.items()
    },
    "resnet18": _Family(
        resnet18.build, "grid", "layer4.1", "ResNet-18, 224 pixels: the backbone of the paper."
    ),
}


def names() -> tuple[str, ...]:
    """The networks in the box; ``describe`` also has the doors to others.

    >>> names()
    ('efficientnet-lite0', 'efficientnet-lite1', 'efficientnet-lite2', 'resnet18')
    """
    return tuple(_FAMILIES)


def describe() -> dict[str, str]:
    """Every name that ``build`` takes, with one line about it; capitals stand for yours.

    >>> list(describe())[-1]
    'onnx:FILE'
    """
    return {name: family.what for name, family in _FAMILIES.items()} | doors.describe()


def exists(name: str) -> bool:
    """Does ``build`` know the name, or a door that it leads through?

    >>> exists("resnet18"), exists("onnx:my.onnx"), exists("my.module.build")
    (True, True, False)
    """
    return name in _FAMILIES or doors.is_door(name)


def first_default_at(name: str) -> str:
    """The split that runs recorded before there was a grid mean where they name none.

    >>> first_default_at("resnet18")
    'layer4.1'
    """
    return "grid" if doors.is_door(name) else _family(name).first_default_at


def _family(name: str) -> _Family:
    if name not in _FAMILIES:
        raise BadSetting(f"no backbone {name!r}: use one of {', '.join(describe())}")
    return _FAMILIES[name]


def build(
    name: str = DEFAULT_BACKBONE,
    *,
    at: str | None = None,
    weights: str | Path | None = None,
    engine: str = "auto",
    precision: str = "float32",
    batchnorm: str = "frozen",
    threads: int | None = None,
    device: str = "cpu",
) -> Backbone:
    """A backbone by name, cut before the layer ``at``; "grid" is the compact split (default).

    ``weights`` is a path, "random" (deterministic; for measuring speed), or by default the
    published ImageNet weights. ``threads`` are those of G (default: as many as torch uses);
    ``device`` is where G and F compute: "auto", "cpu", "cuda" or "mps".

    >>> backbone = build("efficientnet-lite0", weights="random")
    >>> backbone.G([np.zeros((48, 64, 3), np.uint8)]).shape, backbone.F.head.d
    (torch.Size([1, 320, 2, 2]), 1280)
    """
    device = resolve_device(device)
    if doors.is_door(name):
        setup = doors.Setup(at, engine, precision, batchnorm, threads, device)
        backbone = doors.build(name, weights, setup)
        backbone.F.to(device)
        return backbone
    family = _family(name)
    network = family.build(family.default_at if at is None else at, weights)
    prepare = network.preprocess
    G = FrozenNetwork(
        nn.Sequential(Normalise(prepare.mean, prepare.std), network.front),
        prepare,
        example=np.zeros((prepare.size, prepare.size, 3), np.uint8),
        engine=engine,
        threads=threads,
        device=device,
    )
    F = plastic(network.body, torch.zeros(1, *G.z_shape), precision=precision, batchnorm=batchnorm)
    key = content_key([name, network.at, prepare], [network.front, network.body])
    F.to(device)
    return Backbone(name, network.at, G, F, key)
