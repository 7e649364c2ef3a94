"""Objects of `tabletop` that hold a drink or food: each function builds one instance.

Lengths are in units of about one object height; `h` is the point spacing.
"""

from __future__ import annotations

import numpy as np

from verse.datasets.tabletop.paint import DARK, METAL, Variety, to_linear_rgb
from verse.datasets.tabletop.surfaces import Cloud, curve, solid, sweep, tube, unite


def bottle(v: Variety, h: float) -> Cloud:
    r, neck, shoulder = v.uniform(0.15, 0.25), v.uniform(0.05, 0.085), v.uniform(0.5, 0.75)
    glass, tag = v.colour((0.2, 0.8)), v.colour((0.6, 1))
    top = 1.25
    soft = curve(
        [
            (r, 0.03),
            (r, shoulder * 0.6),
            (r * 0.97, shoulder),
            (neck * 1.4, shoulder + 0.22),
            (neck, shoulder + 0.35),
        ],
        30,
    )
    body = sweep(
        [(0, 0), (r * 0.9, 0), *soft, (neck, top - 0.1), (0, top - 0.1)], h, solid(glass), gloss=1.0
    )
    low, high = v.uniform(0.12, 0.2), shoulder * v.uniform(0.75, 0.95)
    label = v.pattern(tag, v.colour((0.1, 0.7)), ("label", "bands", "label", "dots", "checks"))
    wrap = sweep([(r + 0.006, low), (r + 0.006, high)], h, label, gloss=0.2)
    cap = sweep(
        [(neck, top - 0.12), (neck * 1.25, top - 0.12), (neck * 1.25, top), (0, top)],
        h,
        solid(v.colour()),
        gloss=0.5,
    )
    return unite([body, wrap, cap]).move(scale=0.95)


def bowl(v: Variety, h: float) -> Cloud:
    r, deep, foot = v.uniform(0.48, 0.62), v.uniform(0.24, 0.46), v.uniform(0.18, 0.28)
    full = v.uniform(0.3, 1.0)
    wall = curve(
        [
            (foot, 0.05),
            (foot + 0.6 * (r - foot), deep * 0.3),
            (r * full + (1 - full) * r * 0.9, deep * 0.7),
            (r, deep),
        ],
        30,
    )
    inner = np.maximum(wall[::-1] * (0.95, 1) + (0, 0.03), (0, 0.08))
    outside = v.pattern(
        v.colour((0.5, 1)), v.colour(), ("plain", "bands", "dots", "zigzag", "stripes")
    )
    shell = sweep([(0, 0), (foot, 0), *wall, (r * 0.98, deep + 0.03)], h, outside, gloss=0.6)
    return shell + sweep(
        [(r * 0.98, deep + 0.03), *inner, (0, 0.08)], h, solid(v.colour((0.6, 1))), gloss=0.6
    )


def can(v: Variety, h: float) -> Cloud:
    r, z = v.uniform(0.22, 0.36), v.uniform(0.6, 0.9)
    art = v.pattern(
        v.colour(), v.colour((0.6, 1)), ("label", "bands", "label", "stripes", "zigzag", "checks")
    )
    rim = [
        (r * 0.86, z - 0.05),
        (r * 0.86, z),
        (r * 0.93, z),
        (r * 0.92, z - 0.035),
        (0, z - 0.035),
    ]
    top = sweep([(r, z - 0.1), *rim], h, solid(METAL), gloss=0.9)
    side = sweep([(r, 0.05), (r, z - 0.1)], h, art, gloss=0.7)
    base = sweep([(0, 0), (r * 0.88, 0), (r, 0.05)], h, solid(METAL), gloss=0.9)
    ring = np.linspace(0, 2 * np.pi, 24)
    loop = np.stack([0.07 * np.cos(ring) + 0.06, 0.05 * np.sin(ring), 0 * ring + z - 0.02], 1)
    pull = tube(loop, 0.014, h, solid(METAL * 0.6), across=(0, 0, 1), gloss=0.9)
    return unite([top, side, base, pull])


def mug(v: Variety, h: float) -> Cloud:
    r, z, flare = v.uniform(0.26, 0.38), v.uniform(0.5, 0.8), v.uniform(0.85, 1.12)
    outside = v.pattern(
        v.colour((0.4, 1)), v.colour(), ("plain", "bands", "dots", "label", "stripes", "checks")
    )
    shell = sweep(
        [
            (0, 0),
            (r * flare * 0.92, 0),
            (r * flare, 0.04),
            (r, z),
            (r - 0.02, z + 0.015),
            (r - 0.035, z),
        ],
        h,
        outside,
        gloss=0.7,
    )
    drink = v.choice(
        (
            to_linear_rgb(0.07, 0.8, 0.25),
            to_linear_rgb(0.1, 0.3, 0.85),
            to_linear_rgb(0.06, 0.9, 0.15),
        )
    )
    level = z * v.uniform(0.6, 0.88)
    hollow = sweep([(r - 0.035, z), (r - 0.04, level)], h, solid(v.colour((0.6, 1))), gloss=0.6)
    surface = sweep([(r - 0.03, level), (0, level)], h, solid(drink), gloss=0.8)
    reach, top, low = v.uniform(0.17, 0.27), z * v.uniform(0.75, 0.92), z * v.uniform(0.18, 0.35)
    ear = curve(
        [
            (r * 0.95, 0, top),
            (r + 0.8 * reach, 0, top),
            (r + reach, 0, (top + low) / 2),
            (r + 0.6 * reach, 0, low),
            (r * 0.95, 0, low),
        ]
    )
    grip = tube(
        ear,
        v.uniform(0.035, 0.055),
        h,
        v.pattern(v.colour((0.4, 1)), v.colour(), ("plain",)),
        gloss=0.7,
    )
    return unite([shell, hollow, surface, grip]).move(scale=1.1)


def teapot(v: Variety, h: float) -> Cloud:
    r, z, waist = v.uniform(0.33, 0.42), v.uniform(0.42, 0.62), v.uniform(0.3, 0.7)
    glaze, ink = v.colour((0.35, 1)), v.colour()
    coat = v.pattern(glaze, ink, ("plain", "dots", "bands", "stripes", "zigzag"))
    side = curve(
        [
            (r * 0.62, 0.02),
            (r * 0.98, z * waist * 0.6),
            (r, z * waist),
            (r * 0.75, z * 0.9),
            (r * 0.42, z),
        ],
        30,
    )
    body = sweep([(0, 0), *side], h, coat, gloss=0.8)
    lid = sweep(
        [
            (r * 0.45, z - 0.01),
            (r * 0.36, z + 0.05),
            (0.05, z + 0.08),
            (0.04, z + 0.1),
            (0.065, z + 0.14),
            (0.04, z + 0.18),
            (0, z + 0.19),
        ],
        h,
        solid(v.choice((glaze, ink))),
        gloss=0.8,
    )
    tip = v.uniform(0.75, 1.05) * z
    beak = curve(
        [
            (r * 0.75, 0, z * 0.3),
            (r * 1.3, 0, z * 0.42),
            (r * 1.45, 0, tip * 0.8),
            (r * 1.75, 0, tip),
        ]
    )
    spout = tube(beak, [0.1, 0.09, 0.06, 0.045, 0.05], h, solid(glaze), gloss=0.8)
    ear = curve(
        [
            (-r * 0.7, 0, z * 0.85),
            (-r * 1.35, 0, z * 0.95),
            (-r * 1.6, 0, z * 0.6),
            (-r * 1.3, 0, z * 0.25),
            (-r * 0.9, 0, z * 0.25),
        ]
    )
    grip = tube(ear, v.uniform(0.03, 0.045), h, solid(v.choice((glaze, ink, DARK))), gloss=0.6)
    return unite([body, lid, spout, grip]).move(scale=1.05)
