"""What a backbone is: G frozen in front, F plastic behind, cut at a named layer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from verse.backbones.grid import grid_name, grid_size, with_grid
from verse.backbones.precision import resolve
from verse.backbones.preprocess import Preprocess
from verse.network.plastic import Head, Plastic
from verse.suggestions import suggest_and_list
from verse.types import BadSetting


class Extractor(Protocol):
    """G: images to features, frozen, with its own preprocessing."""

    @property
    def z_shape(self) -> tuple[int, ...]:
        """The shape of one feature."""

    @property
    def engine(self) -> str:
        """What runs the network: "onnxruntime", "torch", or "none"."""

    @property
    def threads(self) -> int:
        """Threads used for one call; assign to change it."""

    @threads.setter
    def threads(self, n: int) -> None: ...

    def preprocess(self, image: object) -> npt.NDArray[np.generic]:
        """One image in any form that ``verse.images.rgb`` takes → the network's input."""

    def run(self, inputs: npt.NDArray[np.generic]) -> Tensor:
        """Prepared inputs [n, …] → float32 z [n, \\*z_shape]."""

    def __call__(self, images: Sequence[object]) -> Tensor:
        """Images → float32 z [n, \\*z_shape]: ``preprocess`` each, then ``run``."""


@dataclass(frozen=True)
class Backbone:
    """A pretrained network in two parts; ``key`` binds stored features to the G that made them.

    ``at`` names the first plastic layer. The engine that runs G is not part of the key: engines
    agree to about 1e-5, not in every bit, so a store of features adds ``G.engine`` itself.

    Parameters
    ----------
    name
        Of the network.
    at
        The first layer of F.
    G
        The frozen part: images → features.
    F
        The part that learns: features → scores.
    key
        A hash of G and its weights.

    >>> from verse.backbones import identity
    >>> identity(8).at
    'fc'
    """

    name: str
    at: str
    G: Extractor
    F: Plastic
    key: str

    def __repr__(self) -> str:
        """Without the networks themselves."""
        shape = "×".join(map(str, self.G.z_shape))
        return f"<Backbone {self.name} at {self.at}: features {shape}, key {self.key[:8]}>"


@dataclass(frozen=True)
class Network:
    """What a family's file builds: both parts as plain modules, and how images get in.

    Parameters
    ----------
    at
        The first plastic layer.
    front
        The layers of G.
    body
        The layers of F but its head.
    preprocess
        From an image to the input of G.
    """

    at: str
    front: nn.Module
    body: nn.Module
    preprocess: Preprocess


def cut(
    stages: Mapping[str, nn.Module], at: str, *, backbone: str
) -> tuple[nn.Sequential, nn.Module]:
    """The stages before ``at``, and those from ``at`` on; "fc" cuts behind the last stage.

    >>> front, rest = cut({"stem": nn.ReLU(), "pool": nn.Flatten()}, "pool", backbone="tiny")
    >>> len(front), len(rest)
    (1, 1)
    """
    names = [*stages, "fc"]
    if at not in names[1:]:
        known = ["grid", *names[1:]]
        raise BadSetting(f"{backbone} has no split point {at!r}{suggest_and_list(at, known)}")
    i = names.index(at)
    rest = _sequence(names[i:-1], stages) if at != "fc" else nn.Identity()
    return _sequence(names[:i], stages), rest


def split_network(
    stages: Mapping[str, nn.Module],
    at: str,
    *,
    last_map: str,
    backbone: str,
    preprocess: Preprocess,
) -> Network:
    """The network cut at a stage, or G ending in a grid of the map before the stage ``last_map``.

    >>> stages = {"stem": nn.Conv2d(3, 4, 32, 32), "pool": nn.Flatten()}
    >>> split_network(stages, "grid", last_map="pool", backbone="tiny", preprocess=Preprocess()).at
    'grid'
    """
    positions = grid_size(at)
    if positions is None:
        return Network(at, *cut(stages, at, backbone=backbone), preprocess)
    front, _ = cut(stages, last_map, backbone=backbone)
    example = torch.zeros(1, 3, preprocess.size, preprocess.size)
    front = with_grid(front, example, positions)
    return Network(grid_name(positions), front, nn.Flatten(1), preprocess)


def _sequence(names: Iterable[str], stages: Mapping[str, nn.Module]) -> nn.Sequential:
    sequence = nn.Sequential()
    for name in names:
        sequence.add_module(name.replace(".", "_"), stages[name])  # a dot would mean nesting
    return sequence


def plastic(body: nn.Module, z: Tensor, *, precision: str, batchnorm: str) -> Plastic:
    """F on ``body``, its head sized by trying one feature ``z`` [1, \\*z_shape]."""
    body.eval()
    with torch.no_grad():
        e = body(z)
    if e.ndim != 2:
        raise BadSetting(f"the plastic part must give one vector per image, not {tuple(e.shape)}")
    z_shape = tuple(z.shape[1:])
    return Plastic(
        body,
        Head(e.shape[1]),
        z_shape=z_shape,
        precision=resolve(precision) if any(True for _ in body.parameters()) else "float32",
        batchnorm=batchnorm,
        channels_last=_prefers_channels_last(body, z_shape),
    )


def _prefers_channels_last(body: nn.Module, z_shape: tuple[int, ...]) -> bool:
    """Measured: 1×1 convolutions, and 3×3 ones on maps of up to 8×8 (by ``kernels.winograd``), are
    fastest on channels-last features; oneDNN's dense convolutions on larger maps are not."""
    dense = (
        m.groups == 1 and max(m.kernel_size) > 1 for m in body.modules() if isinstance(m, nn.Conv2d)
    )
    if type(body) is nn.Flatten:  # F is linear: in the order of z it needs no copy
        return False
    return len(z_shape) == 3 and (max(z_shape[1:]) <= 8 or not any(dense))


def content_key(facts: Sequence[object], modules: Sequence[nn.Module]) -> str:
    """sha256 over constants and every tensor of the modules, independent of the file format.

    >>> content_key(["a"], [nn.ReLU()]) == content_key(["b"], [nn.ReLU()])
    False
    """
    digest = hashlib.sha256(repr(tuple(facts)).encode())
    for module in modules:
        for name, tensor in sorted(module.state_dict().items()):
            if name.endswith("num_batches_tracked"):
                continue  # a training counter, without effect on any output
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
