"""Colours and patterns of `tabletop`: what objects, tables and rooms are painted with."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from verse.datasets.tabletop.surfaces import Array, Paint, solid

T = TypeVar("T")
METAL = np.array([0.55, 0.56, 0.58], np.float32)
DARK = np.array([0.03, 0.03, 0.035], np.float32)
PATTERNS = ("plain", "bands", "stripes", "checks", "dots", "zigzag", "label", "speckle")


class Variety:
    """Parameters of one instance, spread evenly over the instances of its category.

    Each call draws one parameter: instance i gets that parameter's phase plus i strides (mod 1).
    Neighbouring instances lie far apart, and as every parameter has its own stride, two
    instances that come close in one differ in the others.

    >>> len({round(Variety([0], i).uniform(0, 1), 3) for i in range(6)})
    6
    """

    def __init__(self, seed: Sequence[int], instance: int) -> None:
        self.rng = np.random.default_rng(list(seed))
        self.instance = instance

    def uniform(self, low: float, high: float) -> float:
        phase, stride = self.rng.random(), self.rng.uniform(0.15, 0.85)
        return low + (high - low) * float((phase + self.instance * stride) % 1.0)

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self.uniform(0, len(options)))]

    def colour(self, value: tuple[float, float] = (0.25, 0.95)) -> Array:
        """Any colour, now and then a grey."""
        hue, drab = self.uniform(0, 1), self.uniform(0, 1)
        sat = 0.08 if drab < 0.2 else 0.5 + 0.5 * drab
        return to_linear_rgb(hue, sat, self.uniform(*value))

    def pattern(self, base: Array, ink: Array, options: Sequence[str] = PATTERNS) -> Paint:
        style, count = self.choice(options), self.uniform(0, 1)
        return pattern(style, base, ink, count, int(self.rng.integers(1 << 30)) + self.instance)


def to_linear_rgb(hue: float, saturation: float, value: float) -> Array:
    """HSV as a screen shows it → linear RGB."""
    return np.asarray(colorsys.hsv_to_rgb(hue % 1, saturation, value), np.float32) ** 2.2


def pattern(style: str, base: Array, ink: Array, count: float, seed: int) -> Paint:
    """One of PATTERNS in two colours; `count` in [0, 1] says how fine it is."""
    if style == "plain":
        return solid(base)
    n, rng = 3 + round(4 * count), np.random.default_rng(seed)
    glyphs = rng.random((5, 48)) < 0.6  # pseudo-text of a label
    grain = rng.random((64, 64)).astype(np.float32)

    def mask(u: Array, v: Array) -> Array:
        if style == "bands":
            m = (v * n) % 1 < 0.4
        elif style == "stripes":
            m = (u * 2 * n) % 1 < 0.45
        elif style == "checks":
            m = ((u * 3 * n).astype(int) + (v * 2 * n).astype(int)) % 2 == 0
        elif style == "dots":
            m = ((u * 2 * n) % 1 - 0.5) ** 2 + ((v * n) % 1 - 0.5) ** 2 < 0.09
        elif style == "zigzag":
            m = (v * n + np.abs((u * 2 * n) % 1 - 0.5)) % 1 < 0.4
        elif style == "label":
            row, col = (v * 16).astype(int) - 5, ((u * 2) % 1 * 48).astype(int)
            text = (row >= 0) & (row < 5) & glyphs[np.clip(row, 0, 4), col]
            m = (v > 0.27) & (v < 0.68) & ~(text & ((u * 2) % 1 > 0.25))
        else:
            m = grain[(v * 63).astype(int), (u * 63).astype(int)] ** 3
        return np.asarray(m, np.float32)

    def paint(u: Array, v: Array) -> Array:
        m = mask(u, v)[:, None]
        return (base * (1 - m) + ink * m).astype(np.float32)

    return paint


def noise(rng: np.random.Generator, shape: tuple[int, int], cells: tuple[int, int]) -> Array:
    """Smooth noise in [0, 1]: random values on a grid, interpolated between."""
    grid = rng.random((cells[0] + 1, cells[1] + 1)).astype(np.float32)
    y, x = (np.linspace(0, c, s, endpoint=False) for c, s in zip(cells, shape, strict=True))
    i, j = y.astype(int), x.astype(int)
    fy, fx = (y - i)[:, None], (x - j)[None, :]
    fy, fx = fy * fy * (3 - 2 * fy), fx * fx * (3 - 2 * fx)
    top = grid[i][:, j] * (1 - fx) + grid[i][:, j + 1] * fx
    low = grid[i + 1][:, j] * (1 - fx) + grid[i + 1][:, j + 1] * fx
    return np.asarray(top * (1 - fy) + low * fy, np.float32)


def board(rng: np.random.Generator, style: str, base: Array, ink: Array, n: int) -> Array:
    """An n × n table top in one of the styles wood, cloth, tiles, marble, plain."""
    y, x = np.mgrid[0:n, 0:n].astype(np.float32) / n
    if style == "wood":
        rings = noise(rng, (n, n), (24, 2)) * 3 + noise(rng, (n, n), (90, 3))
        m = 0.6 * (rings % 1) + 0.5 * ((y * 9) % 1 < 0.03)
    elif style == "cloth":
        k = int(rng.integers(10, 22))
        m = 0.5 * ((x * k) % 1 < 0.5) + 0.5 * ((y * k) % 1 < 0.5)
    elif style == "tiles":
        k = int(rng.integers(7, 14))
        m = np.maximum((x * k) % 1 < 0.06, (y * k) % 1 < 0.06) + 0.3 * noise(rng, (n, n), (k, k))
    elif style == "marble":
        veins = noise(rng, (n, n), (8, 8)) + 0.5 * noise(rng, (n, n), (20, 20))
        m = np.exp(-60 * (veins - 0.75) ** 2) + 0.2 * noise(rng, (n, n), (40, 40))
    else:
        m = 0.35 * noise(rng, (n, n), (6, 6)) + 0.15 * noise(rng, (n, n), (80, 80))
    m = np.clip(m, 0, 1)[:, :, None]
    return np.asarray(base * (1 - m) + ink * m, np.float32)


def room(rng: np.random.Generator, wall: Array, floor: Array) -> Array:
    """What is seen past the table: [64 elevations from -60° to 60°, 256 azimuths, 3]."""
    image: Array = np.empty((64, 256, 3), np.float32)
    edge = int(rng.integers(24, 31))
    image[edge:] = wall
    image[:edge] = floor
    for _ in range(int(rng.integers(14, 26))):  # pictures, shelves, furniture, windows
        w, h = int(rng.integers(5, 34)), int(rng.integers(4, 22))
        x = int(rng.integers(0, 256))
        y = max(8, edge - 10) + int(rng.integers(0, 26))
        tint = to_linear_rgb(
            float(rng.random()), float(rng.random()) * 0.8, float(rng.uniform(0.1, 1))
        )
        image[y : y + h, np.arange(x, x + w) % 256] = tint
    for _ in range(2):  # out of focus
        image = (image + np.roll(image, 1, 1) + np.roll(image, -1, 1)) / 3
        image[1:-1] = (image[:-2] + image[1:-1] + image[2:]) / 3
    return image
