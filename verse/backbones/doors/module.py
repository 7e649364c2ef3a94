"""A frozen PyTorch network from a library as a backbone: pixels in, its last map or vector out."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np
import torch
from torch import Tensor, nn

from verse.backbones.base import Backbone, content_key, plastic
from verse.backbones.doors.splits import choose_split
from verse.backbones.extractor import FrozenNetwork
from verse.backbones.preprocess import Normalise, Preprocess
from verse.types import BadSetting


@dataclass(frozen=True)
class Setup:
    """How a backbone runs; the same for every door.

    Parameters
    ----------
    at
        Where it is cut; None for the grid.
    engine, threads, device
        What runs G.
    precision, batchnorm
        Of F.

    >>> Setup(at="fc").engine
    'auto'
    """

    at: str | None = None
    engine: str = "auto"
    precision: str = "float32"
    batchnorm: str = "frozen"
    threads: int | None = None
    device: str = "cpu"


class Patches(nn.Module):
    """Tokens [n, t, c] as a map [n, c, h, w], without the first ones that stand for no place.

    >>> Patches(1, 2)(torch.zeros(1, 5, 8)).shape
    torch.Size([1, 8, 2, 2])
    """

    def __init__(self, first: int, side: int) -> None:
        super().__init__()
        self.first, self.side = first, side

    def forward(self, tokens: Tensor) -> Tensor:
        patches = tokens[:, self.first :].transpose(1, 2)
        return patches.reshape(tokens.shape[0], tokens.shape[2], self.side, self.side)


def place_tokens(count: int, first: int | None) -> nn.Module | None:
    """What makes a map of ``count`` tokens; ``first`` of them stand for no place (None: guess).

    >>> place_tokens(257, 1).side, place_tokens(50, None).first, place_tokens(40, 0)
    (16, 1, None)
    """
    for before in range(9) if first is None else (first,):
        side = isqrt(max(0, count - before))
        if side and side * side == count - before:
            return Patches(before, side)
    return None


def build_from_module(
    front: nn.Module, prepare: Preprocess, setup: Setup, *, name: str, revision: str
) -> Backbone:
    """The backbone whose G is ``front`` and a grid; the key holds weights, pixels and revision."""
    front.float().eval().requires_grad_(False)
    pixels = torch.zeros(1, 3, prepare.size, prepare.size)
    with torch.no_grad():
        try:
            z = front(pixels)
        except (RuntimeError, AssertionError, ValueError, TypeError) as error:
            reason = str(error).strip().partition("\n")[0][:200]
            raise BadSetting(
                f"{name} does not take images of {prepare.size} pixels: {reason}"
            ) from error
    if not isinstance(z, Tensor) or z.dim() not in (2, 4):
        raise BadSetting(f"{name} gives neither a vector nor a map for an image")
    at, grid, body = choose_split(setup.at, tuple(z.shape[1:]), name)
    layers = [Normalise(prepare.mean, prepare.std), front, *([] if grid is None else [grid])]
    G = FrozenNetwork(
        nn.Sequential(*layers),
        prepare,
        example=np.zeros((prepare.size, prepare.size, 3), np.uint8),
        engine=setup.engine,
        threads=setup.threads,
        device=setup.device,
    )
    F = plastic(
        body, torch.zeros(1, *G.z_shape), precision=setup.precision, batchnorm=setup.batchnorm
    )
    kind = name.partition(":")[0]
    return Backbone(name, at, G, F, content_key([kind, at, prepare, revision], [front]))
