"""ResNet-18, the backbone of the paper, with torchvision's names and without torchvision.

He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.

Split points: ``grid`` (the default: 2 × 2 averaged positions of the last map, [512, 2, 2]; also
``grid1``, ``grid3``; F is linear), ``layer1.0`` … ``layer4.1`` (the paper: G ends with layer4.0),
``avgpool``, ``fc`` (features are pooled; F is the linear layer alone, as ExStream needs it).
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from torch import Tensor, nn

from verse.backbones.base import Network, split_network
from verse.backbones.preprocess import Preprocess
from verse.backbones.weights import (
    RANDOM,
    PublishedWeights,
    fill,
    find_weights,
    randomise,
    read_weights,
)

PUBLISHED = PublishedWeights(
    url="https://download.pytorch.org/models/resnet18-f37072fd.pth",
    files={
        "resnet18-f37072fd.pth": (
            "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec"
        ),
        "resnet18-imagenet1k-v1.safetensors": (
            "a86a18d67ce8166f0d6fd224cd137a1b47c7c54e11dabb82fda1915b5fcad6e3"
        ),
    },
)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut, which is a 1×1 convolution where shapes change.

    >>> import torch
    >>> BasicBlock(4, 8, stride=2)(torch.zeros(1, 4, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, inputs: int, outputs: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        z: Tensor = self.relu(self.bn2(self.conv2(y)) + self.downsample(x))
        return z


def build_resnet_stages() -> dict[str, nn.Module]:
    """The network without its classifier, in order of computation, each stage by its name."""
    stem = {
        "conv1": nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        "bn1": nn.BatchNorm2d(64),
        "relu": nn.ReLU(),
        "maxpool": nn.MaxPool2d(3, 2, 1),
    }
    parts: dict[str, nn.Module] = {"stem": nn.Sequential(OrderedDict(stem))}
    width = 64
    for i, outputs in enumerate((64, 128, 256, 512), start=1):
        parts[f"layer{i}.0"] = BasicBlock(width, outputs, stride=1 if i == 1 else 2)
        parts[f"layer{i}.1"] = BasicBlock(outputs, outputs, stride=1)
        width = outputs
    parts["avgpool"] = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    return parts


def translate_resnet_key(published: str) -> str:
    """torchvision keeps the stem's layers at the top; everything else has the same name.

    >>> translate_resnet_key("bn1.weight"), translate_resnet_key("layer4.1.bn1.weight")
    ('stem.bn1.weight', 'layer4.1.bn1.weight')
    """
    return published if published.startswith("layer") else f"stem.{published}"


def build(at: str, weights: str | Path | None) -> Network:
    """The network cut at ``at`` with published, given or random weights."""
    parts = build_resnet_stages()
    if weights == RANDOM:
        randomise(parts)
    else:
        path = (
            Path(weights) if weights is not None else find_weights(PUBLISHED, backbone="resnet18")
        )
        state = {
            translate_resnet_key(k): v
            for k, v in read_weights(path).items()
            if not k.startswith("fc.")
        }
        fill(parts, state, path)
    return split_network(
        parts, at, last_map="avgpool", backbone="resnet18", preprocess=Preprocess()
    )
