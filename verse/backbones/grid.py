"""The compact split: G ends in a few averaged positions of its last map; F is linear behind."""

from __future__ import annotations

import re

import torch
from torch import Tensor, nn

from verse.backbones.outputs import unit_rows
from verse.types import BadSetting

POSITIONS = 2
LENGTH = 10.0
"""Norm of every feature: with it one learning rate fits all networks."""


def grid_size(at: str) -> int | None:
    """How many positions a side a split of that name has; None if it names a layer.

    >>> grid_size("grid"), grid_size("grid3"), grid_size("head")
    (2, 3, None)
    """
    match = re.fullmatch(r"grid([1-9]?)", at)
    return None if match is None else int(match[1] or POSITIONS)


def grid_name(positions: int) -> str:
    """The name of the split, one for each grid.

    >>> grid_name(2), grid_name(3)
    ('grid', 'grid3')
    """
    return "grid" if positions == POSITIONS else f"grid{positions}"


class Scale(nn.Module):
    """Every sample [n, …] divided by its norm, times ``LENGTH``.

    >>> Scale()(torch.tensor([[[3.0], [4.0]]])).flatten().tolist()
    [6.0, 8.0]
    """

    def forward(self, z: Tensor) -> Tensor:
        return unit_rows(z.flatten(1)).mul_(LENGTH).view(z.shape)


class Grid(nn.Sequential):
    """Maps [n, c, height, width] averaged to [n, c, positions, positions], of norm ``LENGTH``.

    Windows are of one size and cover every position; they overlap where the side is not a
    multiple. What has no positions ([n, d]) is scaled only.

    Parameters
    ----------
    shape
        Of a feature: [c, height, width] or [d].
    positions
        Along each side.

    >>> Grid((3, 7, 7), 2)(torch.ones(1, 3, 7, 7)).shape
    torch.Size([1, 3, 2, 2])
    """

    def __init__(self, shape: tuple[int, ...], positions: int) -> None:
        layers: list[nn.Module] = [Scale()]
        if len(shape) == 3:
            high, wide = shape[1:]
            if positions > min(high, wide):
                raise BadSetting(
                    f"the last map has {high} × {wide} positions: a grid of {positions} × "
                    f"{positions} does not fit"
                )
            stride = high // positions, wide // positions
            last = positions - 1
            kernel = high - last * stride[0], wide - last * stride[1]
            layers.insert(0, nn.AvgPool2d(kernel, stride))
        elif len(shape) != 1:
            raise BadSetting(
                f"a grid is made of maps [n, c, h, w], not of {len(shape) + 1} dimensions"
            )
        super().__init__(*layers)


def with_grid(front: nn.Module, example: Tensor, positions: int) -> nn.Sequential:
    """``front``, followed by the grid of its output map; ``example`` [1, …] gives the shape.

    >>> with_grid(nn.Conv2d(3, 8, 3), torch.zeros(1, 3, 9, 9), 2)(torch.zeros(4, 3, 9, 9)).shape
    torch.Size([4, 8, 2, 2])
    """
    with torch.no_grad():
        shape = tuple(front.eval()(example).shape[1:])
    return nn.Sequential(front, Grid(shape, positions))
