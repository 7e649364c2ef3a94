"""Pretrained networks in two parts: G, frozen, from images to features; F, plastic, behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from verse.backbones import efficientnet_lite0, resnet18
from verse.backbones.base import Backbone, Extractor, Network, content_key, plastic
from verse.backbones.extractor import FrozenNetwork
from verse.backbones.identity import identity
from verse.backbones.plastic import Head, Plastic
from verse.backbones.preprocess import Normalise, Preprocess
from verse.backbones.split import split
from verse.types import BadSetting

__all__ = [
    "Backbone",
    "Extractor",
    "Head",
    "Plastic",
    "Preprocess",
    "build",
    "identity",
    "names",
    "split",
]


@dataclass(frozen=True)
class _Family:
    build: Callable[[str, str | Path | None], Network]
    default_at: str


_FAMILIES = {
    "efficientnet-lite0": _Family(efficientnet_lite0.build, "head"),
    "resnet18": _Family(resnet18.build, "layer4.1"),
}


def names() -> tuple[str, ...]:
    """What ``build`` can build.

    >>> names()
    ('efficientnet-lite0', 'resnet18')
    """
    return tuple(_FAMILIES)


def build(
    name: str = "efficientnet-lite0",
    *,
    at: str | None = None,
    weights: str | Path | None = None,
    engine: str = "auto",
    precision: str = "float32",
    batchnorm: str = "frozen",
    threads: int | None = None,
) -> Backbone:
    """A backbone by name, cut before the layer ``at``.

    ``weights`` is a path, "random" (deterministic; for measuring speed), or by default the
    published ImageNet weights. ``threads`` are those of G (default: as many as torch uses).

    >>> backbone = build("efficientnet-lite0", at="fc", weights="random")
    >>> backbone.G([np.zeros((48, 64, 3), np.uint8)]).shape, backbone.F.head.d
    (torch.Size([1, 1280]), 1280)
    """
    if name not in _FAMILIES:
        raise BadSetting(f"no backbone {name!r}: use one of {', '.join(_FAMILIES)}")
    family = _FAMILIES[name]
    network = family.build(family.default_at if at is None else at, weights)
    prepare = network.preprocess
    G = FrozenNetwork(
        nn.Sequential(Normalise(prepare.mean, prepare.std), network.front),
        prepare,
        example=np.zeros((prepare.size, prepare.size, 3), np.uint8),
        engine=engine,
        threads=threads,
    )
    F = plastic(network.body, torch.zeros(1, *G.z_shape), precision=precision, batchnorm=batchnorm)
    key = content_key([name, network.at, prepare], [network.front, network.body])
    return Backbone(name, network.at, G, F, key)
