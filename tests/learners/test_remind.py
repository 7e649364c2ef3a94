"""REMIND: codes, bytes, eviction, per-class rates, and both ways to a codec."""

from __future__ import annotations

import pytest
import torch

from verse.checks import LEARNER_CHECKS, small_network, small_stream
from verse.kernels.product_quantizer import ProductQuantizer
from verse.learners import REMIND
from verse.memory import ClassBalanced, Reservoir
from verse.network import Head, Plastic
from verse.types import BadSetting


def _maps_network(channels_last: bool = False) -> Plastic:
    body = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(1))
    return Plastic(body, Head(32), z_shape=(32, 3, 3), channels_last=channels_last)


def _taught(learner: REMIND, n: int = 30, classes: int = 3, seed: int = 0) -> REMIND:
    g = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(classes, *learner.F.z_shape, generator=g)
    for t in range(n):
        y = t % classes
        learner.learn_one(centres[y] + 0.3 * torch.randn(learner.F.z_shape, generator=g), y)
    return learner


@pytest.mark.parametrize("check", LEARNER_CHECKS, ids=lambda c: c.__name__)
def test_conforms_once_the_codec_is_trained(check) -> None:
    """The registry's run of the suite is mostly over before the codec exists; this one is not."""
    check(lambda F, memory, seed: REMIND(F, memory, base=5, lr=0.1, seed=seed))


@pytest.mark.parametrize("channels_last", [False, True])
def test_codes_round_trip(channels_last: bool) -> None:
    """Position by position, in either layout: decoded features have the codes they came from."""
    learner = _taught(REMIND(_maps_network(channels_last), ClassBalanced(20), base=10))
    z = torch.randn(4, 32, 3, 3)
    stored = learner.F.stored(z)
    codes = learner.encode(stored)
    assert codes.shape == (4, 9, 2) and codes.dtype == torch.uint8
    decoded = learner.maps.back(learner.decode(codes))
    assert decoded.shape == stored.shape
    assert torch.equal(learner.encode(decoded), codes)
    # the vector at one position of one map, by hand
    plain = ProductQuantizer(learner.codebooks).encode(z[1, :, 2, 0].unsqueeze(0))
    assert torch.equal(codes[1, 2 * 3 + 0], plain[0])


def test_answers_see_quantised_features() -> None:
    learner = _taught(REMIND(_maps_network(), ClassBalanced(20), base=10))
    z = torch.randn(5, 32, 3, 3)
    quantised = learner.maps.back(learner.decode(learner.encode(z)))
    assert not torch.equal(quantised, z)
    assert torch.equal(learner.logits(z), learner.theta.scores(quantised))


def test_memory_holds_codes_of_everything_from_the_first_sample() -> None:
    learner = REMIND(_maps_network(), ClassBalanced(100), base=10)
    _taught(learner, 9)
    assert learner.codebooks is None and len(learner.raw) == 9 and len(learner.memory) == 0
    _taught(learner, 1)
    assert learner.codebooks is not None and len(learner.raw) == 0 and len(learner.memory) == 10
    _taught(learner, 15)
    assert len(learner.memory) == 25 and learner.memory.fields["z"].dtype == torch.uint8


def test_fit_trains_the_codec_before_the_stream() -> None:
    learner = REMIND(_maps_network(), ClassBalanced(100), base=10)
    learner.fit(torch.randn(40, 32, 3, 3), torch.zeros(40))
    assert learner.codebooks is not None and len(learner.memory) == 0
    _taught(learner, 3)
    assert len(learner.memory) == 3 and len(learner.raw) == 0
    with pytest.raises(BadSetting, match="already"):
        learner.fit(torch.randn(40, 32, 3, 3), torch.zeros(40))


def test_fit_after_some_samples_keeps_them() -> None:
    learner = _taught(REMIND(_maps_network(), ClassBalanced(100), base=10), 4)
    learner.fit(torch.randn(40, 32, 3, 3), torch.zeros(40))
    assert len(learner.memory) == 4


def test_rate_decays_by_a_counter_per_class() -> None:
    learner = REMIND(small_network("linear"), ClassBalanced(10), lr=0.1, base=5)
    _taught(learner, 2, classes=2)
    learner.seen = [0, 0]
    assert learner.rate(0) == 0.1
    for n, rate in [
        (99, 0.1),
        (100, 0.1 * 0.01 ** (100 / 1300)),
        (650, 0.1 * 0.01 ** (600 / 1300)),
        (1300, 0.001),
        (99_999, 0.001),
    ]:
        learner.seen = [n, 3]
        assert learner.rate(0) == pytest.approx(rate)
        assert learner.rate(1) == 0.1  # the other class keeps its own


def test_rate_follows_the_class_of_the_sample() -> None:
    learner = REMIND(
        small_network("linear"), ClassBalanced(30), lr=0.1, lr_step=5, lr_span=10, base=3
    )
    stream = small_stream(learner.F, classes=2, each=6)
    rates = []
    for z, y in stream:
        if y - 10 < len(learner.seen):
            rates.append((y - 10, round(learner.rate(y - 10), 6)))
        learner.learn_one(z, y)
    assert learner.seen == [6, 6]
    assert [r for y, r in rates if y == 0] == [0.1] * 4 + [0.01]
    assert [r for y, r in rates if y == 1] == [0.1] * 4 + [0.01]


def test_one_update_equals_torch_sgd_with_momentum() -> None:
    """Without crops, mixup and replay an update is torch's own, at the rate of the class."""
    F = small_network("linear")
    learner = REMIND(F, ClassBalanced(10), C=0, lr=0.1, weight_decay=0.01, clip=None, base=1000)
    head = torch.nn.Linear(6, 2)
    z = torch.randn(6, 6)
    learner.learn_one(z[0], 0)
    learner.learn_one(z[1], 1)
    views = learner.theta.layout.views(learner.theta.data)
    moved = learner.velocity.layout.views(learner.velocity.data)
    with torch.no_grad():
        head.weight.copy_(views["head.weight"][:2])
        head.bias.copy_(views["head.bias"][:2])
    sgd = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    sgd.state[head.weight]["momentum_buffer"] = moved["head.weight"][:2].clone()
    sgd.state[head.bias]["momentum_buffer"] = moved["head.bias"][:2].clone()
    for t in (2, 3, 4, 5):
        learner.learn_one(z[t], t % 2)
        sgd.zero_grad()
        torch.nn.functional.cross_entropy(head(z[t : t + 1]), torch.tensor([t % 2])).backward()
        sgd.step()
    assert torch.allclose(views["head.weight"][:2], head.weight, atol=1e-6)
    assert torch.allclose(views["head.bias"][:2], head.bias, atol=1e-6)


def test_makes_room_in_the_largest_class() -> None:
    """Whatever rule the given memory follows, REMIND's own applies."""
    learner = REMIND(small_network("linear"), Reservoir(12), base=3)
    stream = small_stream(learner.F, classes=3, each=20)
    for z, y in stream[:20]:
        learner.learn_one(z, y)
    assert learner.memory.counts() == {0: 12}
    for z, y in stream[20:24]:
        learner.learn_one(z, y)
    assert learner.memory.counts() == {0: 8, 1: 4}
    for z, y in stream[24:]:
        learner.learn_one(z, y)
    counts = learner.memory.counts()  # equal, but for ties broken at random
    assert sum(counts.values()) == 12 and min(counts.values()) >= 3


def test_bytes_are_those_of_codes_also_after_resume() -> None:
    F = _maps_network()
    item = 9 * 2 + 8  # nine positions of two bytes, and the output
    a, b = (REMIND(F, ClassBalanced(byte_limit=26 * 15 + 5), base=10) for _ in range(2))
    assert a.memory.item_bytes == item and a.memory.limit == 15
    _taught(a, 40)
    assert len(a.memory) == 15 and a.memory.bytes == 15 * item
    b.load_state({k: v.clone() for k, v in a.state().items()})
    assert b.memory.fields["z"].dtype == torch.uint8
    assert (b.memory.item_bytes, b.memory.limit, b.memory.bytes) == (item, 15, 15 * item)
    _taught(b, 10, seed=1)
    assert len(b.memory) == 15
    held = sum(f[: len(b.memory)].numel() * f.element_size() for f in b.memory.fields.values())
    assert held == 15 * item


def test_bytes_that_are_reported_include_the_base_set() -> None:
    F, raw = _maps_network(), 10 * (32 * 9 * 4 + 8)
    a, b = (_taught(REMIND(F, ClassBalanced(15), base=10), n) for n in (3, 40))
    assert a.memory_bytes == b.memory_bytes == 15 * (9 * 2 + 8) + raw
    c = REMIND(F, ClassBalanced(15), base=10)
    c.load_state({k: v.clone() for k, v in b.state().items()})
    assert c.memory_bytes == b.memory_bytes
    d = REMIND(F, ClassBalanced(15), base=10)
    d.fit(torch.randn(40, 32, 3, 3), torch.zeros(40))  # no sample of the stream is kept raw
    assert _taught(d, 20).memory_bytes == 15 * (9 * 2 + 8)


def test_published_size_of_a_sample() -> None:
    """512 × 7 × 7 maps: 32 codebooks and 1,568 bytes, as the authors report."""
    body = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(1))
    learner = REMIND(Plastic(body, Head(512), z_shape=(512, 7, 7)), ClassBalanced(1))
    assert learner.code_length == 32
    assert learner.memory.item_bytes - 8 == 1568


def test_forgetting_reaches_the_base_set() -> None:
    learner = _taught(REMIND(_maps_network(), ClassBalanced(20), base=100), 9)
    assert learner.forget(1) == 3
    assert learner.raw.counts() == {0: 3, 1: 3} and learner.labels == [0, 2]


def test_mixup_and_crops_reach_the_network(monkeypatch) -> None:
    """The batch has the new sample first, unmixed, and C mixed ones; targets sum to one."""
    learner = _taught(REMIND(_maps_network(), ClassBalanced(40), base=10, C=4, mixup=0.5))
    seen = []

    def gradient(Z, loss, **_):
        _, slope = loss(torch.zeros(len(Z), 3))
        seen.append((Z, torch.softmax(torch.zeros(len(Z), 3), 1) - slope * len(Z)))
        raise RuntimeError("enough")

    monkeypatch.setattr(learner.theta, "gradient", gradient)
    with pytest.raises(RuntimeError):
        learner.learn_one(torch.randn(32, 3, 3), 2)
    Z, target = seen[0]
    assert Z.shape == (5, 32, 3, 3)
    assert torch.allclose(target.sum(1), torch.ones(5)) and target.min() >= -1e-6
    assert target[0].tolist() == pytest.approx([0, 0, 1], abs=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [{"parts": 3}, {"base": 0}, {"codec": "zip"}, {"codebook_size": 300}, {"mixup": -1.0}],
)
def test_bad_settings(wrong) -> None:
    with pytest.raises(BadSetting):
        REMIND(_maps_network(), ClassBalanced(20), **wrong)


def test_faiss_codec_learns_too() -> None:
    pytest.importorskip("faiss")
    learner = _taught(REMIND(_maps_network(), ClassBalanced(20), base=10, codec="faiss"))
    assert len(learner.memory) == 20
