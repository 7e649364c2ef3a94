"""DER: the logits of insertion time, the loss, and what happens when the head grows."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from verse.checks import small_network, small_stream
from verse.kernels.losses import ragged_mse
from verse.learners import DER, build
from verse.learners.variants import derpp
from verse.memory import Memory, Reservoir, Ring
from verse.types import BadSetting


def learned(n: int = 20, *, kind: str = "conv", **settings) -> tuple[DER, list]:
    learner = DER(small_network(kind), Reservoir(50), lr=0.05, **settings)
    stream = small_stream(learner.F)
    for z, y in stream[:n]:
        learner.learn_one(z, y)
    return learner, stream


def test_logits_are_those_from_before_the_update_and_stay() -> None:
    learner, stream = learned(20)
    z, y = stream[3]  # a class that is known, so the head does not grow
    before = learner.logits(learner.F.stored(z))[0]
    learner.learn_one(z, y)
    slot = len(learner.memory) - 1
    held = learner.memory.fields["logits"][slot, : len(learner.labels)].clone()
    torch.testing.assert_close(held, before)
    assert not torch.allclose(held, learner.logits(learner.F.stored(z))[0])
    for z, y in stream[21:]:
        learner.learn_one(z, y)
    assert torch.equal(learner.memory.fields["logits"][slot, : held.numel()], held)
    assert int(learner.memory.fields["width"][slot]) == held.numel()


def test_survives_growth_beyond_the_allocated_head() -> None:
    learner = DER(small_network(), Reservoir(100))
    stream = small_stream(learner.F, classes=40, each=2)
    for z, y in stream[:30]:
        learner.learn_one(z, y)
    early = learner.memory.fields["logits"][:30].clone()
    for z, y in stream[30:]:
        learner.learn_one(z, y)
    assert learner.memory.fields["logits"].shape[1] == 64
    assert torch.equal(learner.memory.fields["logits"][:30, :16], early)
    assert not learner.memory.fields["logits"][:30, 16:].any()
    widths = learner.memory.fields["width"][: len(stream)].tolist()
    assert widths == [1 + t // 2 for t in range(80)]


@pytest.mark.parametrize("policy", [Reservoir, Ring])
def test_a_budget_in_bytes_holds_while_logits_widen(policy: type[Memory]) -> None:
    memory = policy(byte_limit=6000)
    learner = DER(small_network(), memory)
    held = []
    for z, y in small_stream(learner.F, classes=40, each=2):
        learner.learn_one(z, y)
        held.append(len(memory))
        assert len(memory) * memory.item_bytes <= 6000
        assert memory.fields["y"].shape[0] == memory.limit
    assert held[31] > held[-1]  # fewer fit once each has more logits
    if policy is Ring:
        latest = memory.fields["y"][memory.order_by_age()].tolist()
        assert latest == sorted(latest) and latest[-1] == 39
    resumed = DER(small_network(), policy(byte_limit=6000))
    resumed.load_state(learner.state())
    assert torch.equal(resumed.memory.all().z, memory.all().z)


@pytest.mark.parametrize(("beta", "later"), [(0.0, "ignore"), (0.7, "ignore"), (0.7, "lowest")])
def test_update_against_autograd(beta: float, later: str) -> None:
    learner, stream = learned(30, alpha=0.3, beta=beta, later=later, clip=None)
    z, y = stream[30]
    mark = learner.memory.random.mark()
    old = learner.memory.sample(16)
    more = learner.memory.sample(16)
    learner.memory.random.undo(mark)
    assert len(set(old.extra["width"].tolist())) > 1  # stored before and after growths

    twin = learner.theta.copy().module

    def net(Z: torch.Tensor) -> torch.Tensor:
        return twin(Z.permute(0, 3, 1, 2))

    loss = functional.cross_entropy(twin(z[None]), torch.tensor([learner.labels.index(y)]))
    gaps = []
    for s, h, w in zip(net(old.z), old.extra["logits"], old.extra["width"], strict=True):
        k = int(w)
        gaps.append((s[:k] - h[:k]).square())
        if later == "lowest":
            gaps.append((s[k:] - h[:k].min()).square())
    loss = loss + 0.3 * torch.cat(gaps).mean()
    if beta:
        loss = loss + beta * functional.cross_entropy(net(more.z), more.y)
    parameters = dict(twin.named_parameters())
    grads = torch.autograd.grad(loss, list(parameters.values()))
    expected = {k: p - 0.05 * g for (k, p), g in zip(parameters.items(), grads, strict=True)}

    learner.learn_one(z, y)
    for name, value in learner.theta.layout.views(learner.theta.data).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-6)


def test_the_first_sample_has_no_replay() -> None:
    learner, _ = learned(1)
    assert len(learner.memory) == 1 and learner.memory.fields["width"][0] == 1


def test_later_outputs_have_no_gradient() -> None:
    _, grad = ragged_mse(torch.ones(2, 2), torch.tensor([1.0, 2.0]))(torch.zeros(2, 5))
    assert grad.ne(0).tolist() == [[True, False, False, False, False], [True, True] + [False] * 3]


def test_derpp_is_der_with_beta() -> None:
    learner = build("derpp", small_network(), Reservoir(5))
    assert isinstance(learner, DER) and learner.beta == 0.5 and learner.alpha == 0.2
    assert derpp.__doc__


def test_settings_are_checked() -> None:
    with pytest.raises(BadSetting, match="later"):
        DER(small_network(), Reservoir(5), later="maybe")
