"""What a method of statistics looks at: values of a sample that learning never changes."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from verse.learners.shared.grid_features import GridFeatures
from verse.network import Head, Plastic
from verse.network.net import Net
from verse.settings import about
from verse.types import BadSetting

CHOICES = ("embedding", "input", "grid")
WHERE = 0.5  # how much "where" counts beside "what" in a grid
FeatureChoice = Annotated[str, about("what of a sample it looks at", one_of=CHOICES)]


class FixedFeatures:
    """Features [n, d] of stored samples: ``embedding`` is what F's own last layer is given before
    any training; ``input`` is what F itself is given, averaged over the positions of a map;
    ``grid`` is its quarters (``GridFeatures``).

    >>> F = Plastic(nn.Identity(), Head(2), z_shape=(2,))
    >>> FixedFeatures("input", Net(F))(torch.ones(1, 2)).tolist()
    [[1.0, 1.0]]
    """

    def __init__(self, choice: str, start: Net) -> None:
        if choice not in CHOICES:
            raise BadSetting(f"features {choice!r}: use one of {', '.join(CHOICES)}")
        self.choice, self._start = choice, start
        z_shape = start.module.z_shape
        pooled = z_shape[0] if len(z_shape) == 3 else int(torch.Size(z_shape).numel())
        self.d = pooled if choice == "input" else start.module.head.d
        if choice == "grid":
            self.grid = GridFeatures(
                z_shape, s=WHERE, channels_last=start.channels_last, device=start.data.device
            )
            self.d = self.grid.d

    def __call__(self, Z: Tensor) -> Tensor:
        if self.choice == "embedding":
            return self._start.embed(Z)
        if self.choice == "grid":
            return self.grid(Z)
        if Z.dim() != 4:
            return Z.flatten(1)
        return Z.mean((1, 2) if self._start.channels_last else (2, 3))

    def network(self, weight: Tensor, bias: Tensor) -> Plastic:
        """The linear classifier (weight [classes, d], bias [classes]) of these features."""
        if self.choice == "embedding":
            return self._start.freeze(weight, bias)
        head = Head(self.d)
        head.weight.data, head.bias.data = weight.clone(), bias.clone()
        head.n = weight.shape[0]
        z_shape = self._start.module.z_shape
        if self.choice == "grid":
            return Plastic(self.grid.module, head, z_shape=z_shape)
        mean = nn.AdaptiveAvgPool2d(1) if len(z_shape) == 3 else nn.Identity()
        return Plastic(nn.Sequential(mean, nn.Flatten()), head, z_shape=z_shape)
