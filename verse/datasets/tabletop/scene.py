"""Sessions and videos of `tabletop`: positions, light and the path of the camera."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from verse.datasets.tabletop.objects import CATEGORIES, litter
from verse.datasets.tabletop.paint import Variety, board, room, to_linear_rgb
from verse.datasets.tabletop.surfaces import GOLDEN, Array, Cloud, normalize, unite

REACH = 3.2  # the table texture covers [-REACH, REACH]²
TABLES = ("wood", "cloth", "plain", "tiles", "marble")


@dataclass(frozen=True)
class FilmingSession:
    """One place and time: shared by all videos filmed there."""

    table: Array  # [n, n, 3] albedo
    half: tuple[float, float]  # half width and depth of the table
    room: Array  # [64, 256, 3]
    sun: Array  # [3] unit vector towards the light
    light: Array  # [3] its colour
    ambient: Array  # [3]
    distance: float
    elevation: float
    pace: float  # camera turn in radians per frame
    shake: float  # motion blur in pixels at 96 px
    grain: float  # sensor noise
    clutter: int  # other things on the table
    crowd: float  # how often something stands between camera and object

    @staticmethod
    @lru_cache(maxsize=16)  # every video of a session asks for it
    def draw(seed: int, index: int) -> FilmingSession:
        """Session `index`; the main parameters are spread evenly over the sessions."""
        v = Variety([seed, 101], index)
        rng = np.random.default_rng([seed, 102, index])
        azimuth, height = rng.uniform(0, 2 * np.pi), v.uniform(0.5, 1.15)
        sun = np.array(
            [np.cos(azimuth) * np.cos(height), np.sin(azimuth) * np.cos(height), np.sin(height)]
        )
        warm = v.uniform(-1, 1)  # evening … overcast
        tint = np.array([1 + 0.3 * warm, 1, 1 - 0.3 * warm])
        power = v.uniform(0.8, 1.35)
        style = TABLES[(index + int(np.random.default_rng([seed, 103]).integers(5))) % 5]
        wood = style == "wood"
        base = to_linear_rgb(
            0.08 if wood else v.uniform(0, 1),
            0.5 if wood else v.uniform(0.05, 0.5),
            v.uniform(0.45, 0.9),
        )
        ink = (
            base * 0.35
            if wood
            else to_linear_rgb(v.uniform(0, 1), v.uniform(0, 0.5), v.uniform(0.2, 0.95))
        )
        wall = to_linear_rgb(v.uniform(0, 1), v.uniform(0.05, 0.4), v.uniform(0.35, 0.9))
        return FilmingSession(
            table=board(rng, style, base, ink, 320),
            half=(v.uniform(1.3, 2.6), v.uniform(1.3, 2.2)),
            room=room(rng, wall, to_linear_rgb(v.uniform(0, 1), 0.3, v.uniform(0.15, 0.5))),
            sun=sun.astype(np.float32),
            light=(0.75 * power * tint).astype(np.float32),
            ambient=(v.uniform(0.28, 0.5) * power * (2 - tint)).astype(np.float32),
            distance=v.uniform(2.4, 3.4),
            elevation=v.uniform(0.3, 0.85),
            pace=v.uniform(0.07, 0.13),
            shake=v.uniform(0.0, 3.0),
            grain=v.uniform(0.008, 0.04),
            clutter=int(v.uniform(1, 5)),
            crowd=v.uniform(0.15, 0.65),
        )


@dataclass(frozen=True)
class TabletopVideo:
    """One object in one session; frame k depends on k alone, so that a longer video of the same
    seed begins with the shorter one."""

    session: FilmingSession
    cloud: Cloud
    seed: tuple[int, ...]

    @staticmethod
    def draw(seed: int, category: str, instance: int, session: int, h: float) -> TabletopVideo:
        names = list(CATEGORIES)
        ids = (seed, names.index(category), instance, session)
        place, rng = FilmingSession.draw(seed, session), np.random.default_rng([*ids, 104])
        thing = CATEGORIES[category](Variety([seed, 105, ids[1]], instance), h)
        spot = rng.uniform(-0.12, 0.12, 2)
        parts = [thing.move(yaw=rng.uniform(0, 2 * np.pi), to=(spot[0], spot[1], 0))]
        first = rng.uniform(0, 2 * np.pi)
        for k in range(place.clutter):
            angle, far = (
                first + 2 * np.pi * (k * GOLDEN) + rng.uniform(-0.3, 0.3),
                rng.uniform(0.8, 1.25),
            )
            there = (far * np.cos(angle), far * np.sin(angle), 0.0)
            parts.append(litter(rng, h).move(yaw=rng.uniform(0, 6), to=there))
        video = TabletopVideo(place, unite(parts), ids)
        if rng.random() > place.crowd:
            return video
        towards = normalize(video.eye(int(rng.integers(2, 14)))[0]) * rng.uniform(0.75, 0.95)
        block = litter(rng, h / 1.5).move(scale=1.5, yaw=rng.uniform(0, 6))
        return replace(video, cloud=unite([*parts, block.move(to=(towards[0], towards[1], 0))]))

    def eye(self, k: int) -> tuple[Array, Array]:
        """Camera position and the point it looks at in frame k, both [3]."""
        rng, s = np.random.default_rng([*self.seed, 106]), self.session
        way, phase = rng.choice([-1, 1]), rng.uniform(0, 2 * np.pi, 6)
        sway = np.sin(phase + k * np.array([0.11, 0.17, 0.13, 0.09, 0.19, 0.15]))
        azimuth = phase[0] * 7 + way * (s.pace * k + 0.15 * sway[0])
        elevation = np.clip(s.elevation + 0.15 * sway[1] + rng.uniform(-0.1, 0.1), 0.16, 1.2)
        distance = s.distance * (1 + 0.1 * sway[2] + rng.uniform(-0.1, 0.1))
        aim = np.array([0.17 * sway[3], 0.17 * sway[4], 0.38 + 0.1 * sway[5]])
        flat = np.cos(elevation)
        ray = np.array([np.cos(azimuth) * flat, np.sin(azimuth) * flat, np.sin(elevation)])
        return (aim + distance * ray).astype(np.float32), aim.astype(np.float32)

    def axes(self, k: int) -> tuple[Array, Array]:
        """Camera position [3] and its (right, up, forward) rows [3, 3] in frame k."""
        eye, aim = self.eye(k)
        forward = normalize(aim - eye)
        right = normalize(np.cross(forward, np.array([0, 0, 1], np.float32)))
        return eye, np.stack([right, np.cross(right, forward), forward]).astype(np.float32)
