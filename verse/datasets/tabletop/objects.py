"""The categories of `tabletop`: each function builds one instance of the object it is named after.

Adding a category is adding a function and its name to CATEGORIES. Lengths are in units of
about one object height; `h` is the point spacing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verse.datasets.tabletop.paint import DARK, METAL, Variety, to_linear_rgb
from verse.datasets.tabletop.surfaces import (
    Cloud,
    blade,
    curve,
    sheet,
    slab,
    solid,
    sweep,
    tube,
    unite,
)
from verse.datasets.tabletop.vessels import bottle, bowl, can, mug, teapot

ICING = tuple(
    to_linear_rgb(*hsv)
    for hsv in (
        (0.93, 0.5, 1),
        (0.06, 0.75, 0.3),
        (0.1, 0.1, 1),
        (0.55, 0.4, 0.9),
        (0.13, 0.6, 1),
        (0.75, 0.45, 0.85),
    )
)
PAPER = np.array([0.85, 0.82, 0.74], np.float32)


def ball(v: Variety, h: float) -> Cloud:
    t = np.linspace(0, np.pi, 40)
    profile = np.stack([0.5 * np.sin(t), 0.5 - 0.5 * np.cos(t)], 1)
    skin = v.pattern(
        v.colour((0.6, 1)), v.colour(), ("stripes", "bands", "checks", "dots", "zigzag")
    )
    sphere = sweep(profile, h, skin, gloss=v.uniform(0.1, 0.9))
    return sphere.move(tilt=v.uniform(0, 3), yaw=v.uniform(0, 6), scale=v.uniform(0.75, 1)).ground()


def banana(v: Variety, h: float) -> Cloud:
    bend, fat, length = v.uniform(0.12, 0.3), v.uniform(0.085, 0.12), v.uniform(0.52, 0.64)
    arc = curve(
        [
            (-length, 0, bend),
            (-length / 2, 0, 0.04),
            (0, 0, 0),
            (length / 2, 0, 0.06),
            (length, 0, bend * 1.2),
        ]
    )
    skin = to_linear_rgb(v.uniform(0.11, 0.2), 0.9, v.uniform(0.75, 1))
    spots, stem = v.uniform(0.2, 0.95), to_linear_rgb(0.12, 0.7, 0.3)
    speckle = v.pattern(skin, stem * 0.7, ("speckle",))

    def paint(u: np.ndarray, w: np.ndarray) -> np.ndarray:
        ripe = skin * (1 - spots) + speckle(u, w) * spots
        ripe = ripe * (1 - 0.25 * (np.abs((u * 5) % 1 - 0.5) > 0.42)[:, None])  # ridges
        tip = ((w < 0.1) | (w > 0.955))[:, None]
        return np.where(tip, stem, ripe).astype(np.float32)

    radius = [0.03, 0.03, 0.65 * fat, fat, 1.1 * fat, 1.12 * fat, 1.1 * fat, fat, 0.7 * fat, 0.03]
    one = tube(arc, radius, h, paint, gloss=0.25)
    parts = [
        one.move(tilt=1.25, yaw=0.25 * k, to=(0, 0.17 * k, 0)) for k in range(int(v.uniform(1, 3)))
    ]
    return unite(parts).ground()


def book(v: Variety, h: float) -> Cloud:
    w, d, t = v.uniform(0.62, 0.85), v.uniform(0.9, 1.1), v.uniform(0.1, 0.26)
    cover, ink = v.colour((0.25, 0.8)), v.colour((0.5, 1))
    face = v.pattern(cover, ink, ("label", "zigzag", "bands", "dots", "label"))
    leaves = v.pattern(PAPER, PAPER * 0.55, ("bands",))
    pages = slab((w * 0.95, d * 0.95, t - 0.04), h, (solid(PAPER), leaves, leaves)).move(
        to=(0.01, 0, 0.02)
    )
    lid = slab((w, d, 0.025), h, (face, solid(cover), solid(cover)), gloss=0.4)
    spine = slab((0.025, d, t), h, (solid(cover), solid(cover), v.pattern(cover, ink, ("bands",))))
    closed = unite([lid, lid.move(to=(0, 0, t - 0.025)), pages, spine.move(to=(-w / 2, 0, 0))])
    if v.uniform(0, 1) < 0.35:  # standing, a little open to the back
        return closed.move(yaw=np.pi / 2).move(tilt=np.pi / 2 - 0.12, scale=1.05).ground()
    return closed


def donut(v: Variety, h: float) -> Cloud:
    fat, r = v.uniform(0.17, 0.23), v.uniform(0.3, 0.36)
    dough, icing = to_linear_rgb(0.085, 0.65, v.uniform(0.6, 0.9)), v.choice(ICING)
    t = np.linspace(0, 2 * np.pi, 49)
    ring = np.stack([r + fat * np.cos(t - np.pi / 2), fat * 0.85 * (1 + np.sin(t - np.pi / 2))], 1)
    wave, lobes, n = (
        v.uniform(0.02, 0.08),
        3 + int(v.uniform(0, 5)),
        int(v.uniform(0, 2)) * int(v.uniform(30, 70)),
    )

    def paint(u: np.ndarray, w: np.ndarray) -> np.ndarray:
        drip = wave * np.sin(2 * np.pi * lobes * u)
        iced = (w > 0.27 + drip) & (w < 0.8 - drip)
        return np.where(iced[:, None], icing, dough).astype(np.float32)

    parts = [sweep(ring, h, paint, gloss=0.5)]
    for _ in range(n):  # sprinkles
        a, b = v.rng.uniform(0, 2 * np.pi), v.rng.uniform(0.7, 2.4)
        spot = (r + fat * np.cos(b)) * np.array([np.cos(a), np.sin(a), 0])
        spot[2] = fat * 0.85 * (1 + np.sin(b))
        c = v.rng.uniform(0, np.pi)
        half = 0.03 * np.array([np.cos(c), np.sin(c), 0])
        tint = to_linear_rgb(float(v.rng.random()), 0.8, 1.0)
        parts.append(tube([spot - half, spot + half], 0.011, h, solid(tint), across=(0, 0, 1)))
    return unite(parts).move(scale=1.05)


def hammer(v: Variety, h: float) -> Cloud:
    long, grip, head = v.uniform(0.95, 1.25), v.uniform(0.04, 0.06), v.uniform(0.075, 0.11)
    wood, steel = (
        v.choice((to_linear_rgb(0.09, 0.6, 0.75), v.colour(), DARK)),
        METAL * v.uniform(0.35, 1),
    )
    sleeve = v.pattern(wood, v.colour(), ("plain", "speckle"))
    sleeve_end = v.choice((wood, v.colour(), DARK))

    def shaft(u: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.where((w < 0.4)[:, None], sleeve_end, sleeve(u, w)).astype(np.float32)

    handle = tube(
        [(0, 0, 0), (long, 0, 0)],
        [grip * 1.25, grip * 1.3, grip, grip * 0.85, grip * 0.8],
        h,
        shaft,
    )
    face = [
        (0, -0.26),
        (head, -0.26),
        (head, -0.17),
        (head * 0.7, -0.13),
        (head, -0.08),
        (head, 0.09),
        (0, 0.09),
    ]
    block = sweep(face, h, solid(steel), gloss=0.9).move(tilt=-np.pi / 2, to=(long, 0, 0))
    if v.uniform(0, 1) < 0.6:  # claw
        side = curve(
            [(long, -0.05, 0), (long, -0.2, 0), (long - 0.06, -0.34, 0), (long - 0.16, -0.42, 0)]
        )
        fork = tube(side, [0.07, 0.06, 0.045, 0.02], h, solid(steel), across=(0, 0, 1), gloss=0.9)
        rest = fork.move(to=(0, 0, 0.045)) + fork.move(to=(0, 0, -0.045))
    else:  # mallet or sledge: the same on both sides
        rest = sweep(face, h, solid(steel), gloss=0.9).move(tilt=np.pi / 2, to=(long, 0, 0))
    return (
        unite([handle, block, rest]).move(to=(-long / 2, 0, 0), scale=(0.95, 1.05, 1.05)).ground()
    )


def lamp(v: Variety, h: float) -> Cloud:
    base, pole, shade = v.colour(), v.choice((METAL, v.colour(), DARK)), v.colour((0.6, 1))
    foot = sweep(
        [(0, 0), (v.uniform(0.2, 0.3), 0), (v.uniform(0.18, 0.28), 0.05), (0.04, 0.08), (0, 0.1)],
        h,
        solid(base),
        gloss=0.6,
    )
    wide, narrow, tall = v.uniform(0.3, 0.44), v.uniform(0.12, 0.24), v.uniform(0.3, 0.42)
    cloth = v.pattern(shade, v.colour(), ("plain", "stripes", "bands", "plain", "dots"))
    skin = sweep([(wide, 0), (narrow, tall)], h, cloth, gloss=0.05)
    lining = sweep([(narrow * 0.98, tall), (wide * 0.98, 0)], h, solid(PAPER * 1.1), gloss=0.0)
    bulb = sweep(
        [(0, 0.02), (0.07, 0.08), (0.07, 0.14), (0.03, 0.25), (0, 0.26)], h, solid((1.6, 1.5, 1.2))
    )
    hood = unite([skin, lining, bulb])
    if v.uniform(0, 1) < 0.55:  # table lamp
        post = tube(
            [(0, 0, 0.05), (0, 0, 0.9)],
            [0.03, 0.05, v.uniform(0.03, 0.14), 0.05, 0.025],
            h,
            solid(pole),
            gloss=0.7,
        )
        return unite([foot, post, hood.move(to=(0, 0, 0.75))])
    bow = curve([(0, 0, 0.05), (-0.22, 0, 0.5), (-0.05, 0, 0.9), (0.25, 0, 0.98), (0.38, 0, 0.85)])
    arm = tube(bow, 0.025, h, solid(pole), gloss=0.7)
    return unite(
        [
            foot,
            arm,
            hood.move(scale=0.8)
            .move(yaw=-np.pi / 2)
            .move(tilt=0.25)
            .move(yaw=np.pi / 2, to=(0.42, 0, 0.6)),
        ]
    )


def plant(v: Variety, h: float) -> Cloud:
    r, z = v.uniform(0.2, 0.3), v.uniform(0.26, 0.42)
    clay = v.choice(
        (to_linear_rgb(0.045, 0.7, 0.75), v.colour((0.4, 1)), to_linear_rgb(0.04, 0.75, 0.6))
    )
    glaze = v.pattern(clay, v.colour(), ("plain", "bands", "plain", "zigzag", "dots"))
    pot = sweep(
        [(0, 0), (r * 0.7, 0), (r, z * 0.8), (r * 1.08, z * 0.8), (r * 1.08, z), (r * 0.97, z)],
        h,
        glaze,
        gloss=0.3,
    )
    soil = sweep(
        [(r * 0.98, z - 0.02), (0, z - 0.01)],
        h,
        v.pattern(DARK, to_linear_rgb(0.08, 0.5, 0.3), ("speckle",)),
    )
    green = to_linear_rgb(v.uniform(0.22, 0.4), v.uniform(0.5, 0.9), v.uniform(0.35, 0.7))
    broad, n = v.uniform(0.045, 0.13), int(v.uniform(9, 20))
    high, droop = v.uniform(0.35, 0.65), v.uniform(-0.25, 0.25)
    vein = v.pattern(green, green * v.uniform(0.4, 1.8), ("plain", "stripes", "bands"))
    parts = [pot, soil]
    for k in range(n):
        a = 2 * np.pi * (k * 0.618 + 0.03 * v.rng.random())
        out, up = v.rng.uniform(0.15, 0.42), high * v.rng.uniform(0.6, 1.1)
        rib = curve(
            [
                (0, 0, z - 0.03),
                (out * 0.35, 0, z + up * 0.6),
                (out * 0.8, 0, z + up),
                (out * 1.25, 0, z + up * (0.85 - droop)),
            ],
            24,
        )
        leaf = blade(
            rib, [0.01, 0.4 * broad, broad, broad, 0.6 * broad, 0.0], h, vein, across=(0, 1, 0)
        )
        parts.append(leaf.move(yaw=a))
    return unite(parts)


CATEGORIES: dict[str, Callable[[Variety, float], Cloud]] = {
    f.__name__: f
    for f in (ball, banana, book, bottle, bowl, can, donut, hammer, lamp, mug, plant, teapot)
}


def litter(rng: np.random.Generator, h: float) -> Cloud:
    """Something else that lies about on tables: a block, a cone, a pencil or a card."""
    tint = solid(
        to_linear_rgb(float(rng.random()), float(rng.uniform(0.2, 0.9)), float(rng.uniform(0.3, 1)))
    )
    kind = int(rng.integers(4))
    if kind == 0:
        a = float(rng.uniform(0.18, 0.3))
        return slab((a, a, a * float(rng.uniform(0.7, 1.6))), h, (tint, tint, tint))
    if kind == 1:
        return sweep([(0, 0), (rng.uniform(0.12, 0.2), 0), (0, rng.uniform(0.3, 0.6))], h, tint)
    if kind == 2:
        wood = solid(to_linear_rgb(0.09, 0.5, 0.9))
        rod = tube([(-0.4, 0, 0.04), (0.3, 0, 0.04)], 0.04, h, tint)
        return rod + tube([(0.3, 0, 0.04), (0.42, 0, 0.04)], [0.04, 0.002], h, wood)
    w, z = float(rng.uniform(0.2, 0.35)), float(rng.uniform(0.3, 0.5))
    return sheet((-w / 2, 0, 0), (w, 0, 0), (0, 0.1, z), h, tint) + sheet(
        (w / 2, 0, 0), (-w, 0, 0), (0, 0.1, z), h, tint
    )
