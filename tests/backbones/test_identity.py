from __future__ import annotations

import numpy as np
import pytest
import torch

from verse.backbones import identity
from verse.types import BadImage, BadSetting


def test_features_pass_through() -> None:
    backbone = identity((4,))
    z = np.arange(8, dtype=np.float64).reshape(2, 4)
    out = backbone.G(list(z))
    assert out.dtype == torch.float32
    assert out.tolist() == z.tolist()
    assert torch.equal(backbone.G(list(torch.from_numpy(z))), out)
    assert backbone.G.engine == "none"
    assert backbone.F.body(out) is out
    source = np.zeros((1, 4), np.float32)
    backbone.G.run(source).add_(1)
    assert source.sum() == 0


def test_maps_are_pooled() -> None:
    backbone = identity((3, 2, 2))
    assert backbone.F.head.d == 3
    assert backbone.F.body(torch.ones(1, 3, 2, 2)).tolist() == [[1, 1, 1]]
    assert identity((3, 2)).F.head.d == 6


def test_bad_features() -> None:
    G = identity(4).G
    for bad, reason in (([1, 2], "shape"), ([1, 2, 3, np.nan], "NaN"), ("abcd", "feature")):
        with pytest.raises(BadImage, match=reason):
            G([bad])
    assert G([]).shape == (0, 4)
    for shape in (0, (), (3, -1)):
        with pytest.raises(BadSetting):
            identity(shape)


def test_the_key_is_the_shape() -> None:
    assert identity(4).key == identity((4,)).key != identity(5).key
