"""A budget per class follows the classes there are, also after one was forgotten or merged."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from verse import learners, memory
from verse.checks import small_network, small_stream
from verse.learners.base import Learner
from verse.memory import ClassBalanced, Memory
from verse.memory.doubtful import Doubtful
from verse.memory.herding import Herding
from verse.memory.prototypes import Prototypes
from verse.types import Refused

EXTRA = {Doubtful: {"doubt": ()}, Herding: {"e": (2,)}}
RULES = [*(memory.get(name) for name in memory.names()), Doubtful, Herding, Prototypes]


def begun(rule: type[Memory], **budget: int) -> Memory:
    made = rule(**budget or {"per_class": 5}, seed=3)
    made.allocate(torch.device("cpu"), z=(2,), **EXTRA.get(rule, {}))
    return made


def offer(to: Memory, y: int, t: int) -> None:
    generator = torch.Generator().manual_seed(t)
    shapes = EXTRA.get(type(to), {})
    extra = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    to.add(torch.randn(2, generator=generator), y, **extra)


def crowded(rule: type[Memory]) -> Memory:
    """Four classes, of which the first came most."""
    made = begun(rule)
    t = 0
    for y, n in enumerate((40, 3, 20, 4)):
        made.set_class_count(y + 1)
        for _ in range(n):
            offer(made, y, t := t + 1)
    return made


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def storage(of: Memory) -> int:
    return sum(field.untyped_storage().nbytes() for field in of.fields.values())


def learned(per_class: int = 4, method: str = "tinyer") -> tuple[Learner, list[tuple[Tensor, int]]]:
    F = small_network("linear")
    learner = learners.build(method, F, ClassBalanced(per_class=per_class), seed=0)
    stream = small_stream(F, classes=4, each=8)
    for z, y in stream:
        learner.learn_one(z, y)
    return learner, stream


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_no_longer_fits_leaves_by_the_rule(rule: type[Memory]) -> None:
    one, two = crowded(rule), crowded(rule)
    for made in (one, two):
        made.discard(1)
        made.set_class_count(3)
        assert made.limit == 15 and len(made) <= 15
        made.discard(2)
        made.relabel(3, 0)
        made.set_class_count(1)
        assert made.limit == 5 and len(made) <= 5
        assert made.counts().keys() <= {0}
    assert same(one.state(), two.state())  # the same generator, the same choice


def test_class_balanced_gives_up_the_largest_class() -> None:
    made = crowded(ClassBalanced)
    before = made.counts()
    assert before == {0: 5, 1: 3, 2: 7, 3: 4}
    made.set_class_count(3)  # four must go
    after = made.counts()
    assert sum(after.values()) == 15
    assert before[1] == after[1] and before[3] == after[3]  # the small ones lost nothing
    assert max(after.values()) - min(after[0], after[2]) <= 1


def test_ring_keeps_the_latest() -> None:
    made = memory.Ring(per_class=4)
    made.allocate(torch.device("cpu"), z=(1,))
    made.set_class_count(3)
    for t in range(17):
        made.add(torch.tensor([float(t)]), t % 3)
    made.set_class_count(2)
    assert made.all().z.view(-1).tolist() == list(range(9, 17))
    made.add(torch.tensor([17.0]), 0)
    assert sorted(made.all().z.view(-1).tolist()) == list(range(10, 18))


def test_prototypes_lose_no_sample() -> None:
    """Where there is less room, the closest become one: the counts stay."""
    made = crowded(Prototypes)
    counted = float(made.all().extra["count"].sum())
    made.set_class_count(2)
    assert len(made) <= 10
    assert float(made.all().extra["count"].sum()) == counted


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_fixed_budget_does_not_move(rule: type[Memory]) -> None:
    made = begun(rule, capacity=9)
    for t in range(30):
        made.set_class_count(t // 10 + 1)
        offer(made, t // 10, t)
    before = {k: v.clone() for k, v in made.state().items() if k != "counters"}
    made.set_class_count(1)
    now = made.state()
    assert made.limit == 9 and all(torch.equal(now[k], v) for k, v in before.items())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_saved_after_shrinking_it_goes_on_the_same(rule: type[Memory]) -> None:
    a = crowded(rule)
    a.discard(2)
    a.set_class_count(3)
    b = begun(rule)
    b.load_state({k: v.clone() for k, v in a.state().items()})
    for t in range(40):
        if t == 10:
            a.set_class_count(4), b.set_class_count(4)
        if t == 25:
            assert a.discard(0) == b.discard(0)
            a.set_class_count(3), b.set_class_count(3)
        offer(a, (0, 1, 3, 4)[t % 4], 100 + t)
        offer(b, (0, 1, 3, 4)[t % 4], 100 + t)
        assert torch.equal(a.draw(3), b.draw(3))
    assert same(a.state(), b.state())


def test_storage_shrinks_with_the_budget() -> None:
    made = begun(ClassBalanced)
    made.set_class_count(40)
    for t in range(400):
        offer(made, t % 40, t)
    full = storage(made)
    for y in range(1, 40):
        made.discard(y)
        made.set_class_count(40 - y)
    assert made.limit == len(made) == 5
    assert storage(made) <= full / 20


def test_the_limit_follows_the_live_classes() -> None:
    learner, stream = learned(per_class=4)
    kept = learner.memory
    assert kept is not None and kept.limit == len(kept) == 16
    learner.forget(10)
    assert kept.limit == len(kept) == 12
    learner.merge(11, into=12)
    assert kept.limit == len(kept) == 8
    assert kept.counts() == {0: 4, 1: 4}
    learner.learn_one(*stream[0])  # the forgotten label comes again: a third live class
    assert kept.limit == 12


@pytest.mark.parametrize("method", ["tinyer", "derpp", "verse", "exstream", "icarl"])
def test_forgetting_and_teaching_again_needs_no_more_memory(method: str) -> None:
    learner, stream = learned(method=method)
    again = [(z, y) for z, y in stream if y == 10]
    sizes = []
    for _ in range(50):
        learner.forget(10)
        for z, y in again:
            learner.learn_one(z, y)
        assert learner.memory is not None and learner.memory.limit == 16
        sizes.append(sum(field.nbytes for field in learner.memory.fields.values()))
    assert set(sizes) == {sizes[0]}


def test_a_learner_saved_after_forgetting_goes_on_the_same() -> None:
    a, stream = learned()
    a.forget(11)
    b, _ = learned()  # has more classes than what it becomes
    b.load_state({k: v.clone() for k, v in a.state().items()})
    assert b.memory is not None and b.memory.limit == 12
    for z, y in stream:
        a.learn_one(z, y)
        b.learn_one(z, y)
    assert same(a.state(), b.state())


def test_a_state_of_before_budgets_followed_is_brought_into_line() -> None:
    """Formerly forgotten classes kept their share; such a state loads, and fits from then on."""
    learner, _ = learned()
    learner.forget(11)
    assert learner.memory is not None
    old = {k: v.clone() for k, v in learner.state().items()}
    old["memory.counters"][2] = 4
    learner.load_state(old)
    assert learner.memory.limit == 12 and learner.memory.classes == 3


def test_a_refused_new_class_after_forgetting_leaves_no_trace(monkeypatch) -> None:
    learner, stream = learned()
    learner.forget(11)
    assert learner.memory is not None
    before = {k: v.clone() for k, v in learner.state().items()}

    def refuse(z: Tensor, y: int) -> None:
        learner.memory.sample(3)
        raise Refused("not today")

    with monkeypatch.context() as patch:
        patch.setattr(learner, "step", refuse)
        with pytest.raises(Refused):
            learner.learn_one(stream[8][0], 11)
    assert same(before, learner.state()) and learner.memory.limit == 12
    learner.learn_one(stream[8][0], 11)
    assert learner.memory.limit == 16
