from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from verse import backbones
from verse.backbones.resnet18 import PUBLISHED, build_resnet_stages
from verse.paths import sha256

FILE = "resnet18-imagenet1k-v1.safetensors"
IMAGE = np.random.default_rng(0).integers(0, 256, (2, 90, 120, 3), dtype=np.uint8)


def test_the_parts_are_those_of_the_paper() -> None:
    backbone = backbones.build("resnet18", at="layer4.1", weights="random", engine="torch")
    assert backbone.G.z_shape == (512, 7, 7)
    convolutions = [m for m in backbone.G.network.modules() if isinstance(m, nn.Conv2d)]
    down = [m for m in convolutions if m.kernel_size == (1, 1)]
    assert (len(convolutions) - len(down), len(down)) == (15, 3)
    plastic = [m for m in backbone.F.body.modules() if isinstance(m, nn.Conv2d)]
    assert len(plastic) == 2
    z = torch.rand(2, 512, 7, 7)
    last = z.to(memory_format=torch.channels_last)
    torch.testing.assert_close(backbone.F.body(last), backbone.F.body(z), rtol=1e-4, atol=1e-4)


def test_the_names_are_torchvisions(shared_weights: Path) -> None:
    state = safetensors.torch.load_file(shared_weights / FILE)
    ours = {
        f"{part}.{name}".removeprefix("stem.")
        for part, module in build_resnet_stages().items()
        for name in module.state_dict()
    }
    assert ours == set(state) - {"fc.weight", "fc.bias"}


def test_weights_by_path_and_by_cache(
    shared_weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sha256(shared_weights / FILE) == PUBLISHED.files[FILE]
    path = backbones.build("resnet18", at="fc", weights=shared_weights / FILE)
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path))
    (tmp_path / FILE).symlink_to(shared_weights / FILE)
    cached = backbones.build("resnet18", at="layer4.1")
    z = cached.G(list(IMAGE))
    with torch.no_grad():
        e = cached.F.body(z)
    torch.testing.assert_close(path.G(list(IMAGE)), e, rtol=1e-4, atol=1e-4)


def test_the_key_does_not_depend_on_the_file_format(shared_weights: Path, tmp_path: Path) -> None:
    state = safetensors.torch.load_file(shared_weights / FILE)
    torch.save(state, tmp_path / "a.pth")
    keys = {
        backbones.build("resnet18", at="fc", weights=p, engine="torch").key
        for p in (shared_weights / FILE, tmp_path / "a.pth")
    }
    assert len(keys) == 1
