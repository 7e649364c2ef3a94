"""The camera of `tabletop`: points and table in, 8-bit frames out.

Light is worked out once per video (it does not move); a frame costs one projection of the
points, one depth test at twice the resolution, and one look-up of table and room per pixel.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from verse.datasets.tabletop.scene import REACH, TabletopVideo
from verse.datasets.tabletop.surfaces import Array, normalize

FOCAL = 2.4  # focal length in half image widths: a field of view of 45°
FAR = np.iinfo(np.int64).max
BITS = 24  # low bits of a depth key hold the point's index


class VideoRenderer:
    """A video with its light baked in.

    >>> film = VideoRenderer(TabletopVideo.draw(0, "mug", 0, 0, 0.03), 48)
    >>> film.frame(0).shape
    (48, 48, 3)
    """

    def __init__(self, video: TabletopVideo, size: int) -> None:
        self.video, self.size = video, size
        c, s = video.cloud, video.session
        self.shadow = _Shadow(c.xyz, s.sun)
        sunny = np.maximum(c.normal @ s.sun, 0) * self.shadow.lit(c.xyz + 0.02 * c.normal)
        near = np.clip(0.55 + 1.5 * c.xyz[:, 2], 0, 1)  # close to the table less sky is seen
        sky = (0.62 + 0.38 * c.normal[:, 2]) * near
        self.rgb = c.rgb * (sunny[:, None] * s.light + sky[:, None] * s.ambient)  # [n, 3]
        self.sunny = sunny * c.gloss
        self.facing = np.einsum("nd,nd->n", c.normal, c.xyz)
        self.table = s.table * self._daylight()[..., None] * s.light + s.table * s.ambient
        axis = (np.arange(size, dtype=np.float32) + 0.5) / size * 2 - 1
        x, y = np.meshgrid(axis, -axis)
        self.rays = np.stack([x / FOCAL, y / FOCAL, np.ones_like(x)], -1).reshape(-1, 3)
        self.vignette = (1 - 0.13 * (x**2 + y**2))[..., None]

    def _daylight(self) -> Array:
        """How much sun reaches each texel of the table."""
        n = self.video.session.table.shape[0]
        axis = (np.arange(n, dtype=np.float32) + 0.5) / n * 2 * REACH - REACH
        x, y = np.meshgrid(axis, axis)
        ground = np.stack([x, y, np.zeros_like(x)], -1).reshape(-1, 3)
        day = self.shadow.lit(ground).reshape(n, n)
        for _ in range(2):  # soften the shadow's edge
            day = (day + np.roll(day, 1, 0) + np.roll(day, -1, 0)) / 3
            day = (day + np.roll(day, 1, 1) + np.roll(day, -1, 1)) / 3
        return np.asarray(day * self.video.session.sun[2])

    def frame(self, k: int) -> npt.NDArray[np.uint8]:
        """Frame k, [size, size, 3] RGB."""
        eye, axes = self.video.axes(k)
        things, cover = self.render_objects(eye, axes)
        image = things + (1 - cover) * self._surroundings(eye, axes)
        return self._sensor(image, k)

    def _surroundings(self, eye: Array, axes: Array) -> Array:
        ray = self.rays @ axes  # [size², 3]
        s = self.video.session
        down = np.minimum(ray[:, 2], -1e-4)
        x, y = (eye[j] - ray[:, j] * eye[2] / down for j in (0, 1))
        on = (ray[:, 2] < -1e-4) & (np.abs(x) < s.half[0]) & (np.abs(y) < s.half[1])
        image = np.empty_like(ray)
        n = self.table.shape[0]
        to = n / (2 * REACH)
        image[on] = _bilinear(self.table, (y[on] + REACH) * to - 0.5, (x[on] + REACH) * to - 0.5)
        off = ray[~on]
        tall = np.arctan2(off[:, 2], np.hypot(off[:, 0], off[:, 1]))
        turn = np.arctan2(off[:, 1], off[:, 0]) / (2 * np.pi) % 1
        seen = _bilinear(s.room, (tall / (2 * np.pi / 3) + 0.5) * 63, turn * 255)
        image[~on] = seen * (0.45 * s.light + s.ambient)
        return image.reshape(self.size, self.size, 3)

    def render_objects(self, eye: Array, axes: Array) -> tuple[Array, Array]:
        """Light of the objects per pixel [size, size, 3], and the share they cover."""
        c, wide = self.video.cloud, 2 * self.size
        front = np.flatnonzero(c.normal @ eye > self.facing)
        seen = (c.xyz[front] - eye) @ axes.T
        depth = np.maximum(seen[:, 2], 0.05)
        zoom = FOCAL * self.size / depth
        x = (self.size - 0.5 + seen[:, 0] * zoom).astype(np.int32)
        y = (self.size - 0.5 - seen[:, 1] * zoom).astype(np.int32)
        inside = (x > 0) & (x < wide - 1) & (y > 0) & (y < wide - 1) & (seen[:, 2] > 0.05)
        pixel = (y * wide + x)[inside]
        front = front[inside]
        key = ((depth[inside] * 1e5).astype(np.int64) << BITS) | np.arange(len(front))
        nearest = np.full(wide * wide, FAR)
        for step in (0, 1, wide, wide + 1):  # a point covers 2 × 2 fine pixels: no holes
            np.minimum.at(nearest, pixel + step, key)
        hit = np.flatnonzero(nearest != FAR)
        point = front[nearest[hit] & ((1 << BITS) - 1)]
        half = normalize(normalize(eye - c.xyz[point]) + self.video.session.sun)
        shine = self.sunny[point] * np.maximum((half * c.normal[point]).sum(1), 0) ** 40
        light = np.zeros((wide * wide, 4), np.float32)
        light[hit, :3] = self.rgb[point] + shine[:, None] * self.video.session.light
        light[hit, 3] = 1
        fine = light.reshape(self.size, 2, self.size, 2, 4)
        mean = (fine[:, 0, :, 0] + fine[:, 1, :, 0] + fine[:, 0, :, 1] + fine[:, 1, :, 1]) / 4
        return mean[..., :3], mean[..., 3:]

    def _sensor(self, image: Array, k: int) -> npt.NDArray[np.uint8]:
        s, rng = self.video.session, np.random.default_rng([*self.video.seed, 107, k])
        reach = s.shake * self.size / 96 * rng.uniform(0, 1)
        image = _smear(image, reach, rng.uniform(0, np.pi))
        screen = np.clip(image * self.vignette, 0, 1) ** np.float32(1 / 2.2)
        screen = screen + s.grain * rng.standard_normal(screen.shape, np.float32)
        out: npt.NDArray[np.uint8] = (np.clip(screen, 0, 1) * 255 + 0.5).astype(np.uint8)
        return out


class _Shadow:
    """Depth map seen from the light: a point is lit when nothing is nearer to the light."""

    def __init__(self, xyz: Array, sun: Array) -> None:
        self.sun, self.cell = sun, 0.025
        across = normalize(np.cross(sun, np.array([0, 0, 1], np.float32)))
        self.plane = np.stack([across, np.cross(across, sun)], 1)  # [3, 2]
        flat = xyz @ self.plane / self.cell
        self.low = flat.min(0) - 3
        self.shape = tuple((flat.max(0) - self.low + 5).astype(int))
        at = (flat - self.low).astype(np.int64)
        self.top = np.full(self.shape[0] * self.shape[1], -np.inf, np.float32)
        np.maximum.at(self.top, at[:, 0] * self.shape[1] + at[:, 1], xyz @ sun)

    def lit(self, xyz: Array) -> Array:
        """Share of light in [0, 1] that reaches each point, from 4 neighbouring looks."""
        flat = xyz @ self.plane / self.cell - self.low
        height = xyz @ self.sun + 0.035
        free = np.zeros(len(xyz), np.float32)
        for dx, dy in ((-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)):
            i = np.clip(flat[:, 0] + dx, 0, self.shape[0] - 1).astype(np.int64)
            j = np.clip(flat[:, 1] + dy, 0, self.shape[1] - 1).astype(np.int64)
            free += self.top[i * self.shape[1] + j] < height
        return free / 4


def _bilinear(image: Array, y: Array, x: Array) -> Array:
    """Image values [n, c] at fractional rows and columns."""
    rows, columns = image.shape[:2]
    y, x = np.clip(y, 0, rows - 1.001), np.clip(x, 0, columns - 1.001)
    i, j = y.astype(np.int64), x.astype(np.int64)
    fy, fx = (y - i)[:, None], (x - j)[:, None]
    flat, at = image.reshape(rows * columns, -1), i * columns + j
    top = flat[at] * (1 - fx) + flat[at + 1] * fx
    low = flat[at + columns] * (1 - fx) + flat[at + columns + 1] * fx
    out: Array = top * (1 - fy) + low * fy
    return out


def _smear(image: Array, reach: float, angle: float) -> Array:
    """Motion blur: the mean of copies shifted along a line of `reach` pixels."""
    n = int(np.ceil(reach))
    if n == 0:
        return image
    pad = np.pad(image, ((n, n), (n, n), (0, 0)), mode="edge")
    h, w = image.shape[:2]
    total = np.zeros_like(image)
    steps = np.linspace(-reach / 2, reach / 2, n + 1)
    for t in steps:
        dy, dx = n + round(t * np.sin(angle)), n + round(t * np.cos(angle))
        total += pad[dy : dy + h, dx : dx + w]
    return total / len(steps)
