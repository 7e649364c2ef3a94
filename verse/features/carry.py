"""Features that one machine computed, brought to the cache of another one.

A cache finds frames by what is cheap to know on its own machine (an image by path and time), so
features travel under the frames' names, which are the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from verse.backbones.base import Backbone
from verse.datasets.base import Frames
from verse.features import Features, FeatureStore, frame_digest, store_folder

ROWS = 512  # in a chunk


@dataclass(frozen=True)
class FeaturePack:
    """Features [n, …] with the names of their frames; ``backbone`` must be equal to be of use."""

    backbone: tuple[str, str, str]
    names: list[bytes]
    rows: npt.NDArray[np.float32]


def pack(features: Features, backbone: Backbone, dtype: str) -> FeaturePack:
    """All features of one side of a data set."""
    frames = features.frames
    names = [frame_digest(frames.name(i)) for i in range(len(frames))]
    rows = features[np.arange(len(frames))].numpy()
    return FeaturePack(_identity(backbone, dtype), names, rows)


def unpack_features(packed: FeaturePack, frames: Frames, backbone: Backbone, dtype: str) -> int:
    """Put what these frames lack into this machine's cache; gives how many frames that was."""
    if packed.backbone != _identity(backbone, dtype):
        return 0
    store = FeatureStore(store_folder(None, backbone, dtype), backbone.G.z_shape, dtype)
    keys = [frame_digest(frames.key(i)) for i in range(len(frames))]
    there, known = store.places(keys), {name: row for row, name in enumerate(packed.names)}
    lacking = {
        key: known[name]
        for i, key in enumerate(keys)
        if key not in there and (name := frame_digest(frames.name(i))) in known
    }
    for start in range(0, len(lacking), ROWS):
        part = list(lacking.items())[start : start + ROWS]
        store.add([key for key, _ in part], torch.from_numpy(packed.rows[[row for _, row in part]]))
    return len(lacking)


def _identity(backbone: Backbone, dtype: str) -> tuple[str, str, str]:
    return (backbone.key, backbone.G.engine, dtype)
