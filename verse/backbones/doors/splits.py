"""Where a network from outside is cut: a compact grid, its whole last map, or its average."""

from __future__ import annotations

from torch import nn

from verse.backbones.grid import Grid, grid_name, grid_size
from verse.types import BadSetting


def choose_split(
    at: str | None, shape: tuple[int, ...], backbone: str
) -> tuple[str, nn.Module | None, nn.Module]:
    """(the split's name, what G adds behind the last map, F's body).

    >>> choose_split(None, (8, 7, 7), "mine")[0], choose_split("map", (8, 7, 7), "mine")[1]
    ('grid', None)
    """
    at = "grid" if at is None else at
    positions = grid_size(at)
    if positions is not None:
        return grid_name(positions), Grid(shape, positions), nn.Flatten(1)
    pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1))
    if at == "fc":
        return at, pool if len(shape) == 3 else None, nn.Identity()
    if at == "map" and len(shape) == 3:
        return at, None, pool
    raise BadSetting(
        f"{backbone} has no split point {at!r}. There are: grid (default), grid1, grid3, …, fc"
        + (", map" if len(shape) == 3 else "")
    )
