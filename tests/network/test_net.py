"""The fast form of a network against plain autograd on a copy of its modules."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from verse import backbones
from verse.backbones.efficientnet_lite import Block
from verse.backbones.precision import is_supported
from verse.backbones.resnet18 import BasicBlock
from verse.kernels.losses import cross_entropy, mse
from verse.network import Head, Plastic
from verse.network.net import Net

CLASSES = 5


class Residual(nn.Module):
    """The paper's F in small."""

    def __init__(self, c: int = 32) -> None:
        super().__init__()
        self.block = BasicBlock(c, c, stride=1)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, z: Tensor) -> Tensor:
        return torch.flatten(self.pool(self.block(z)), 1)


def thin() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(6, 20, 1, bias=False),
        nn.BatchNorm2d(20),
        nn.ReLU6(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(1),
    )


def inverted() -> nn.Module:
    return nn.Sequential(Block(6, 6, kernel=3, stride=1, expansion=4, size=7), thin())


class Branching(nn.Module):
    """Python that cannot be traced: it must run as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(6, 8, 1, bias=False)

    def forward(self, z: Tensor) -> Tensor:
        y = self.conv(z)
        return y.mean((2, 3)) if float(z.detach().sum()) > -1e9 else y.amax((2, 3))


class Shared(nn.Module):
    """One convolution used twice: its gradients add up."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(6, 6, 1, bias=False)

    def forward(self, z: Tensor) -> Tensor:
        return self.conv(torch.relu(self.conv(z))).mean((2, 3))


def plastic(
    body: nn.Module,
    z_shape: tuple[int, ...],
    d: int,
    channels_last: bool = True,
    batchnorm: str = "frozen",
    precision: str = "float32",
) -> Plastic:
    generator = torch.Generator().manual_seed(0)
    for module in body.modules():
        if isinstance(module, nn.Conv2d):
            fan = module.weight[0].numel()
            module.weight.data.normal_(0, fan**-0.5, generator=generator)
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_(0, 0.3, generator=generator)
            module.running_var.uniform_(0.5, 1.5, generator=generator)
            module.weight.data.uniform_(-1.0, 1.5, generator=generator)
            module.bias.data.normal_(0, 0.3, generator=generator)
    return Plastic(
        body,
        Head(d),
        z_shape=z_shape,
        channels_last=channels_last,
        batchnorm=batchnorm,
        precision=precision,
    )


def network(F: Plastic) -> Net:
    net = Net(F)
    net.grow_to(CLASSES)
    views = net.layout.views(net.data)
    generator = torch.Generator().manual_seed(1)
    views["head.weight"][:CLASSES] = torch.randn(CLASSES, F.head.d, generator=generator)
    views["head.bias"][:CLASSES] = torch.randn(CLASSES, generator=generator)
    net.sync()
    return net


def twin(net: Net, F: Plastic, training: bool) -> Plastic:
    """The same network in double precision, from the saved state."""
    plain = copy.deepcopy(F).double()
    plain.requires_grad_(True).train(training)
    plain.head.n = CLASSES
    for name, value in net.state().items():
        if name != "stats":
            plain.get_parameter(name).data[: value.shape[0]] = value.double()
    return plain


def batch(F: Plastic, n: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    z = torch.randn(n, *F.z_shape, generator=generator)
    Z = z.permute(0, 2, 3, 1).contiguous() if F.channels_last and z.dim() == 4 else z
    return z.double(), Z, torch.randint(0, CLASSES, (n,), generator=generator)


def distance(net: Net, flat: Tensor, plain: Plastic) -> float:
    """‖fast − plain‖ / ‖plain‖ over all gradients."""
    gap, size = 0.0, 0.0
    for slot in net.layout.slots:
        expected = plain.get_parameter(slot.name).grad
        rows = slot.view(flat).double()
        expected = torch.zeros_like(rows[:0]) if expected is None else expected
        gap += float((rows[: len(expected)] - expected).square().sum())
        size += float(expected.square().sum())
    return (gap / size) ** 0.5


BODIES = {
    "3×3": (Residual, (32, 7, 7), 32),
    "3×3 on other maps": (Residual, (32, 5, 8), 32),
    "3×3 on large maps": (Residual, (32, 9, 9), 32),
    "1×1": (thin, (6, 4, 4), 20),
    "inverted": (inverted, (6, 5, 5), 20),
    "branching": (Branching, (6, 4, 4), 8),
    "shared": (Shared, (6, 4, 4), 6),
    "linear": (nn.Identity, (12,), 12),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("channels_last", [True, False], ids=["channels-last", "plain"])
@pytest.mark.parametrize("batchnorm", ["frozen", "train"])
@pytest.mark.parametrize("n", [3, 17])
def test_gradient_is_autograds(kind: str, channels_last: bool, batchnorm: str, n: int) -> None:
    make, z_shape, d = BODIES[kind]
    F = plastic(make(), z_shape, d, channels_last, batchnorm)
    net = network(F)
    plain = twin(net, F, batchnorm == "train")
    z, Z, y = batch(F, n)
    expected = nn.functional.cross_entropy(plain(z), y)
    expected.backward()
    for _ in range(2):  # a second time: nothing may linger from the first
        value, flat = net.gradient(Z, cross_entropy(y), move_stats=False)
    assert float(value) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert distance(net, flat, plain) < 2e-5
    if batchnorm == "frozen":
        torch.testing.assert_close(net.scores(Z).double(), plain(z).detach(), rtol=1e-5, atol=2e-5)


def test_joint_gradient_is_the_sum() -> None:
    F = plastic(Residual(), (32, 7, 7), 32)
    net = network(F)
    plain = twin(net, F, training=False)
    (z_a, Z_a, y), (z_b, Z_b, _) = batch(F, 9), batch(F, 10)
    target = torch.randn(10, CLASSES, generator=torch.Generator().manual_seed(0))
    (
        nn.functional.cross_entropy(plain(z_a), y)
        + 0.3 * nn.functional.mse_loss(plain(z_b), target.double())
    ).backward()
    _, flat = net.joint_gradient(Z_a, cross_entropy(y), Z_b, mse(target, 0.3))
    assert distance(net, flat, plain) < 2e-5


def test_every_change_of_the_vector_is_seen() -> None:
    """Transformed weights are kept between calls, never beyond a change."""
    F = plastic(Residual(), (32, 7, 7), 32)
    net, other = network(F), network(F)
    _, Z, y = batch(F, 17)
    before = net.scores(Z)
    assert torch.equal(before, net.scores(Z))
    _, flat = net.gradient(Z, cross_entropy(y))
    changes = (
        lambda: net.data.add_(flat, alpha=-0.5),
        lambda: net.data.lerp_(torch.zeros_like(net.data), 0.2),
        lambda: net.step_from(other, flat, 0.25),
        lambda: net.layout.views(net.data)["body.block.conv1.weight"].mul_(0.5),
        lambda: net.grow_to(40),  # other storage
        lambda: net.load_state(network(F).state()),
    )
    for change in changes:
        change()
        fresh = Net(F)
        fresh.load_state(net.state())
        assert torch.equal(fresh.scores(Z), net.scores(Z))
    assert torch.equal(before, net.scores(Z))


def test_batches_of_any_size_give_the_same_scores() -> None:
    F = plastic(Residual(), (32, 7, 7), 32)
    net = network(F)
    _, Z, _ = batch(F, 150)
    whole = net.scores(Z)
    for n in (1, 7, 8, 33):
        parts = torch.cat([net.scores(part) for part in Z.split(n)])
        torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-4)


def test_answers_do_not_share_storage() -> None:
    F = plastic(nn.Sequential(nn.Conv2d(6, 8, 1, bias=False), nn.Flatten(1)), (6, 3, 3), 72)
    net = network(F)
    (_, Z_a, _), (_, Z_b, _) = batch(F, 4), batch(F, 4)
    first = net.embed(Z_a)
    kept = first.clone()
    net.embed(Z_b * 2)
    assert torch.equal(first, kept)


def test_bfloat16_is_near() -> None:
    """Rounded weights, float32 master: gradients agree to bfloat16's three digits."""
    if not is_supported("bfloat16"):
        pytest.skip("this machine cannot compute in bfloat16")
    F = plastic(Residual(), (32, 7, 7), 32, precision="bfloat16")
    net = network(F)
    plain = twin(net, F, training=False)
    z, Z, y = batch(F, 17)
    nn.functional.cross_entropy(plain(z), y).backward()
    _, flat = net.gradient(Z, cross_entropy(y))
    assert distance(net, flat, plain) < 0.05


@pytest.mark.parametrize(
    ("name", "at", "units"), [("resnet18", "layer4.1", 2), ("efficientnet-lite0", "head", 1)]
)
def test_the_splits_with_convolutions_are_fused(name: str, at: str, units: int) -> None:
    net = Net(backbones.build(name, at=at, weights="random", engine="torch").F)
    assert len(net.units) == units
    assert not net.adds_gradients, "every gradient is written in place"
