"""Known or not: measures of an image, and what is usual in the stream.

``measures`` says how far an image is from everything taught, ``threshold`` what counts as usual:
each frame of the stream is measured before it is learned. ``network`` is both as layers that can be
exported.

Belongs here: code that decides whether an image is known, from a learner's statistics or scores.
Does not belong here: the statistics themselves, which are in ``verse.kernels``.
"""

from verse.novelty.measures import (
    KeepsStatistics,
    Measures,
    freshness,
    measure_novelty,
    measured_features,
)
from verse.novelty.network import build_network
from verse.novelty.threshold import BLANK_NOVELTY, REFUSED, WINDOW, Novelty, check_share, due

__all__ = [
    "BLANK_NOVELTY",
    "REFUSED",
    "WINDOW",
    "KeepsStatistics",
    "Measures",
    "Novelty",
    "build_network",
    "check_share",
    "due",
    "freshness",
    "measure_novelty",
    "measured_features",
]
