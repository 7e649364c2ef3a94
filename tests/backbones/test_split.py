from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from verse import backbones
from verse.backbones.preprocess import Preprocess
from verse.backbones.resnet18 import BasicBlock
from verse.types import BadSetting

SMALL = Preprocess(size=32)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        )
        self.one = BasicBlock(8, 8, stride=1)
        self.two = BasicBlock(8, 16, stride=2)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.two(self.one(self.stem(x)))
        x = self.act(x - 0.1)
        return self.fc(self.drop(x.mean((2, 3))))


@pytest.fixture
def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


IMAGES = list(np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8))


@pytest.mark.parametrize("at", ["one", "two", "two.conv1", "stem.2", "act", "fc"])
def test_both_parts_make_the_whole(net: Net, at: str) -> None:
    full = backbones.split(net, at="fc", preprocess=SMALL, engine="torch")
    part = backbones.split(net, at=at, preprocess=SMALL)
    z = part.G(IMAGES)
    before = z.clone()
    with torch.no_grad():
        e = part.F.body(z)
    torch.testing.assert_close(e, full.G(IMAGES), rtol=1e-4, atol=1e-5)
    assert torch.equal(z, before)  # also where the first plastic layer works in place
    assert part.F.head.d == 16
    last = z.to(memory_format=torch.channels_last) if z.ndim == 4 else z
    with torch.no_grad():
        torch.testing.assert_close(part.F.body(last), e, rtol=1e-4, atol=1e-5)


def test_the_users_module_stays_as_it_is(net: Net) -> None:
    net.train()
    state = {k: v.clone() for k, v in net.state_dict().items()}
    F = backbones.split(net, at="two", preprocess=SMALL).F
    with torch.no_grad():
        for p in F.parameters():
            p.add_(1)
    assert net.training
    assert net.stem[2].inplace
    assert all(torch.equal(v, state[k]) for k, v in net.state_dict().items())
    assert all(p.requires_grad for p in net.parameters())


def test_names_that_cannot_be_split(net: Net) -> None:
    with pytest.raises(BadSetting, match=r"several values cross.*one, one\.conv1"):
        backbones.split(net, at="two.conv2", preprocess=SMALL)
    with pytest.raises(BadSetting, match=r"no layer.*two, "):
        backbones.split(net, at="three", preprocess=SMALL)
    with pytest.raises(BadSetting, match="cannot split at 'stem'"):
        backbones.split(net, at="stem", preprocess=SMALL)


class Branching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x


def test_networks_that_cannot_be_split() -> None:
    with pytest.raises(BadSetting, match="cannot be traced"):
        backbones.split(nn.Sequential(Branching(), nn.Linear(2, 2)), at="1")
    with pytest.raises(BadSetting, match=r"must end in an nn\.Linear"):
        backbones.split(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), at="1")


def test_own_preprocessing() -> None:
    net = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))

    def scaled(by: float) -> backbones.Backbone:
        def prepare(x: object) -> np.ndarray:
            return np.asarray(x, np.float32) * by

        return backbones.split(net, at="1", preprocess=prepare, example=[1] * 6)

    a, b = scaled(1.0), scaled(2.0)
    assert a.key != b.key
    assert a.key == scaled(1.0).key
    torch.testing.assert_close(a.G([[2.0] * 6]), b.G([[1.0] * 6]))


def test_the_key_follows_weights_and_split(net: Net) -> None:
    keys = {backbones.split(net, at=at, preprocess=SMALL).key for at in ("one", "two", "fc")}
    with torch.no_grad():
        net.stem[0].weight.add_(1)
    keys.add(backbones.split(net, at="one", preprocess=SMALL).key)
    keys.add(backbones.split(net, at="one", preprocess=Preprocess(size=16)).key)
    assert len(keys) == 5


@pytest.mark.parametrize(("positions", "name"), [(1, "grid1"), (2, "grid"), (3, "grid3")])
def test_the_compact_split(net: nn.Module, positions: int, name: str) -> None:
    """G ends in averaged positions of the last map, all of one length; F is linear behind it."""
    ours = backbones.split(net, grid=positions, preprocess=SMALL)
    plain = backbones.split(net, at=name, preprocess=SMALL, engine="torch")
    assert ours.at == plain.at == name and ours.key == plain.key
    assert ours.G.z_shape[1:] == (positions, positions)
    z = ours.G(IMAGES)
    torch.testing.assert_close(z, plain.G(IMAGES), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(z.flatten(1).norm(dim=1), torch.full((len(IMAGES),), 10.0))
    assert ours.F.head.d == z[0].numel()
    assert not list(ours.F.body.parameters())


def test_a_grid_before_a_named_layer(net: nn.Module) -> None:
    whole = backbones.split(net, at="two", preprocess=SMALL).G(IMAGES)
    compact = backbones.split(net, at="two", grid=1, preprocess=SMALL)
    mean = whole.mean((2, 3), keepdim=True)
    expected = 10 * mean / mean.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    torch.testing.assert_close(compact.G(IMAGES), expected, rtol=1e-4, atol=1e-4)
    assert compact.at == "two-grid1"


def test_a_grid_that_does_not_fit(net: nn.Module) -> None:
    with pytest.raises(BadSetting, match="8 × 8 positions: a grid of 9 × 9 does not fit"):
        backbones.split(net, grid=9, preprocess=SMALL)
    vectors = nn.Sequential(nn.Flatten(), nn.Linear(3072, 4))
    with pytest.raises(BadSetting, match="name a layer to split at"):
        backbones.split(vectors, preprocess=SMALL)
