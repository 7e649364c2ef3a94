"""Surfaces diced into oriented, coloured points: the raw material of `tabletop`.

Every object is a set of swept or flat patches, each diced into points about `h` apart. The
renderer needs no triangles then: at a spacing below one pixel, drawing the points is drawing
the surface.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]  # float32 wherever there are many
# Paint maps surface coordinates (u around, v along, both in [0, 1]) to linear RGB [n, 3].
Paint = Callable[[Array, Array], Array]

GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Cloud:
    """Points of one or more surfaces.

    >>> ball = sweep([(0, 0), (0.5, 0.5), (0, 1)], 0.05, solid((1, 0, 0)))
    >>> ball.xyz.shape == ball.normal.shape == ball.rgb.shape
    True
    """

    xyz: Array  # [n, 3]
    normal: Array  # [n, 3], outward, unit length
    rgb: Array  # [n, 3], linear albedo
    gloss: Array  # [n], 0 dull … 1 polished

    def __add__(self, other: Cloud) -> Cloud:
        return unite([self, other])

    def move(
        self,
        *,
        scale: float | tuple[float, float, float] = 1.0,
        tilt: float = 0.0,
        yaw: float = 0.0,
        to: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> Cloud:
        """Scale per axis, then turn `tilt` about x, then `yaw` about z, then shift."""
        factor = np.broadcast_to(np.asarray(scale, np.float32), (3,))
        ct, st, cy, sy = np.cos(tilt), np.sin(tilt), np.cos(yaw), np.sin(yaw)
        about_x = np.array([[1, 0, 0], [0, ct, -st], [0, st, ct]])
        about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
        turn = (about_z @ about_x).astype(np.float32)
        normal = normalize(self.normal / factor)
        xyz = (self.xyz * factor) @ turn.T + np.asarray(to, np.float32)
        return Cloud(xyz, normal @ turn.T, self.rgb, self.gloss)

    def ground(self) -> Cloud:
        """The same points, resting on z = 0."""
        return self.move(to=(0.0, 0.0, -float(self.xyz[:, 2].min())))


def unite(parts: Sequence[Cloud]) -> Cloud:
    return Cloud(
        np.concatenate([p.xyz for p in parts]),
        np.concatenate([p.normal for p in parts]),
        np.concatenate([p.rgb for p in parts]),
        np.concatenate([p.gloss for p in parts]),
    )


def normalize(v: Array) -> Array:
    out: Array = v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-9)
    return out


def solid(rgb: Sequence[float] | Array) -> Paint:
    colour = np.asarray(rgb, np.float32)
    return lambda u, v: np.broadcast_to(colour, (len(u), 3)).astype(np.float32)


def curve(points: Sequence[Sequence[float]], n: int = 48) -> Array:
    """A smooth (Catmull-Rom) curve of n points through the given ones."""
    p = np.asarray(points, np.float64)
    p = np.concatenate([2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]])
    t = np.linspace(0, len(p) - 3, n)
    k = np.minimum(t.astype(int), len(p) - 4)
    f = (t - k)[:, None]
    a, b, c, d = p[k], p[k + 1], p[k + 2], p[k + 3]
    value: Array = b + 0.5 * f * (
        c - a + f * (2 * a - 5 * b + 4 * c - d + f * (3 * (b - c) + d - a))
    )
    return value.astype(np.float32)


def resample(line: Sequence[Sequence[float]] | Array, h: float) -> Array:
    """Points about h apart along a polyline."""
    p = np.asarray(line, np.float64)
    at = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(p, axis=0), axis=1))])
    n = max(3, int(np.ceil(at[-1] / h)) + 1)
    where = np.linspace(0, at[-1], n)
    return np.stack([np.interp(where, at, p[:, j]) for j in range(p.shape[1])], 1).astype(
        np.float32
    )


def sweep(
    profile: Sequence[Sequence[float]] | Array,
    h: float,
    paint: Paint,
    *,
    path: Array | None = None,
    across: tuple[float, float, float] = (0.0, 1.0, 0.0),
    gloss: float = 0.2,
) -> Cloud:
    """Sweep circles along a path: `profile` lists (radius, position along the path).

    Without a path it runs up the z axis, which makes a surface of revolution; a profile may turn
    back to form an inside. The profile starts at the outside's lower end so that normals point
    out. `path` [k, 3] is planar with normal `across`.
    """
    line = resample(profile, h)
    r, s = np.maximum(line[:, 0], 0), line[:, 1]
    slope = np.gradient(line, axis=0)
    slope /= np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-9)
    rings = np.maximum(1, np.ceil(2 * np.pi * r / h)).astype(int)
    ring = np.repeat(np.arange(len(r)), rings)  # [n] ring of each point
    first = np.repeat(np.cumsum(rings) - rings, rings)
    # Golden-ratio offsets keep neighbouring rings from lining up into moiré.
    u = ((np.arange(len(ring)) - first) / rings[ring] + ring * GOLDEN) % 1.0
    cos, sin = np.cos(2 * np.pi * u)[:, None], np.sin(2 * np.pi * u)[:, None]
    if path is None:
        centre = np.stack([0 * s, 0 * s, s], 1)
        x, y, along = np.eye(3)[:, None, :] * np.ones((3, len(s), 1))
    else:
        dense = np.asarray(path, np.float64)
        at = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(dense, axis=0), axis=1))])
        tangent = np.gradient(dense, axis=0)
        centre = np.stack([np.interp(s, at, dense[:, j]) for j in range(3)], 1)
        along = np.stack([np.interp(s, at, tangent[:, j]) for j in range(3)], 1)
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        y = np.broadcast_to(np.asarray(across, np.float64), along.shape)
        x = np.cross(y, along)
    outward = cos * x[ring] + sin * y[ring]
    xyz = centre[ring] + r[ring, None] * outward
    normal = slope[ring, 1:] * outward - slope[ring, :1] * along[ring]
    v = (ring / max(1, len(r) - 1)).astype(np.float32)
    return _cloud(xyz, normal, paint(u.astype(np.float32), v), gloss)


def tube(
    path: Sequence[Sequence[float]] | Array,
    radius: float | Sequence[float],
    h: float,
    paint: Paint,
    *,
    across: tuple[float, float, float] = (0.0, 1.0, 0.0),
    gloss: float = 0.2,
) -> Cloud:
    """A capped tube; `radius` may list values spread evenly over the path."""
    p = np.asarray(path, np.float32)
    length = float(np.linalg.norm(np.diff(p, axis=0), axis=1).sum())
    given = np.atleast_1d(np.asarray(radius, np.float64))
    s = np.linspace(0, length, 33)
    r = np.interp(s, np.linspace(0, length, len(given)), given) if len(given) > 1 else 0 * s + given
    profile = [(0.0, 0.0), *zip(r.tolist(), s.tolist(), strict=True), (0.0, length)]
    return sweep(profile, h, paint, path=p, across=across, gloss=gloss)


def sheet(
    corner: Sequence[float],
    a: Sequence[float],
    b: Sequence[float],
    h: float,
    paint: Paint,
    *,
    gloss: float = 0.1,
) -> Cloud:
    """The parallelogram corner + u·a + v·b, facing a × b."""
    A, B = np.asarray(a, np.float64), np.asarray(b, np.float64)
    n, m = (max(2, int(np.ceil(np.linalg.norm(e) / h)) + 1) for e in (A, B))
    u, v = (g.ravel() for g in np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, m)))
    xyz = np.asarray(corner, np.float64) + u[:, None] * A + v[:, None] * B
    normal = np.broadcast_to(np.cross(A, B), xyz.shape)
    return _cloud(xyz, normal, paint(u.astype(np.float32), v.astype(np.float32)), gloss)


def slab(
    size: tuple[float, float, float], h: float, paints: Sequence[Paint], *, gloss: float = 0.1
) -> Cloud:
    """A box standing on z = 0, paints for its (top and bottom, front and back, two ends)."""
    x, y, z = size
    X, Y, Z = (x, 0, 0), (0, y, 0), (0, 0, z)
    lo, hi = (-x / 2, -y / 2, 0.0), (x / 2, y / 2, z)
    left, back = (-x, 0, 0), (0, -y, 0)
    lid, front, end = paints
    return unite(
        [
            sheet((lo[0], lo[1], z), X, Y, h, lid, gloss=gloss),
            sheet((lo[0], hi[1], 0), X, back, h, lid, gloss=gloss),
            sheet(lo, X, Z, h, front, gloss=gloss),
            sheet((hi[0], hi[1], 0), left, Z, h, front, gloss=gloss),
            sheet((hi[0], lo[1], 0), Y, Z, h, end, gloss=gloss),
            sheet((lo[0], hi[1], 0), back, Z, h, end, gloss=gloss),
        ]
    )


def blade(
    path: Array, width: Sequence[float], h: float, paint: Paint, *, across: Sequence[float]
) -> Cloud:
    """A thin ribbon along a path, seen from both sides (a leaf, a page)."""
    line = resample(path, h)
    w = np.interp(np.linspace(0, 1, len(line)), np.linspace(0, 1, len(width)), width)
    side = np.linspace(-1, 1, max(3, int(np.ceil(2 * max(width) / h))))
    y = np.asarray(across, np.float64)
    xyz = line[:, None, :] + (w[:, None] * side)[:, :, None] * y
    normal = np.cross(np.gradient(line, axis=0), y)[:, None, :] * np.ones((1, len(side), 1))
    v, u = np.meshgrid(np.linspace(0, 1, len(line)), (side + 1) / 2, indexing="ij")
    rgb = paint(u.ravel().astype(np.float32), v.ravel().astype(np.float32))
    front = _cloud(xyz.reshape(-1, 3), normal.reshape(-1, 3), rgb, 0.15)
    return front + Cloud(front.xyz, -front.normal, front.rgb, front.gloss)


def _cloud(
    xyz: npt.NDArray[np.float64], normal: npt.NDArray[np.float64], rgb: Array, gloss: float
) -> Cloud:
    shine = np.full(len(xyz), gloss, np.float32)
    return Cloud(xyz.astype(np.float32), normalize(normal.astype(np.float32)), rgb, shine)
