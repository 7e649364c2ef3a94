"""Features computed on one machine are found on another one, without reading a frame there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from verse.backbones import identity
from verse.datasets.base import Frames, Source
from verse.features import Features
from verse.features.carry import pack, unpack_features


class Points(Source):
    """The same frames; their keys differ from machine to machine, their names do not."""

    def __init__(self, machine: str, broken: bool = False) -> None:
        self.machine, self.broken = machine, broken

    def read(self, i: int) -> np.ndarray:
        assert not self.broken, "a frame was read again"
        return np.full(3, i, np.uint8)

    def key(self, i: int) -> str:
        return f"{self.machine} {i}"

    def name(self, i: int) -> str:
        return f"point {i}"


def frames(source: Source) -> Frames:
    return Frames([0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1], source)


def test_what_one_machine_computed_another_one_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backbone = identity(3)
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "one"))
    first = Features.of(frames(Points("one")), backbone)
    packed = pack(first, backbone, "float32")
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "two"))
    elsewhere = frames(Points("two", broken=True))
    assert unpack_features(packed, elsewhere, backbone, "float16") == 0  # not of this kind
    assert unpack_features(packed, elsewhere, backbone, "float32") == 4
    assert unpack_features(packed, elsewhere, backbone, "float32") == 0  # there already
    found = Features.of(elsewhere, backbone)
    at = np.arange(4)
    assert torch.equal(found[at], first[at])
