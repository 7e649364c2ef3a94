"""Every memory passes the public checks; each rule does what its name says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from verse import memory as memories
from verse.checks import MEMORY_CHECKS
from verse.memory import ClassBalanced, GreedyBalanced, Memory, Reservoir, Ring
from verse.memory.doubtful import Doubtful
from verse.memory.herding import Herding
from verse.memory.prototypes import Prototypes
from verse.types import BadSetting, BadState, Refused

RULES = [*map(memories.get, memories.names()), Doubtful, Herding, Prototypes]


def filled(memory: Memory, labels, d: int = 2) -> Memory:
    memory.allocate(torch.device("cpu"), z=(d,))
    for t, y in enumerate(labels):
        memory.add(torch.full((d,), float(t)), y)
    return memory


@pytest.mark.parametrize("check", MEMORY_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_checks(rule: type[Memory], check) -> None:
    check(lambda capacity, seed: rule(capacity, seed=seed))


def test_reservoir_is_uniform() -> None:
    """Each of 50 samples survives in a reservoir of 10 with probability 1/5 (χ², 2,000 runs)."""
    kept = np.zeros(50)
    for seed in range(2000):
        memory = filled(Reservoir(10, seed=seed), [0] * 50, d=1)
        kept[memory.all().z[:, 0].long().numpy()] += 1
    chi2 = ((kept - 400) ** 2 / 400).sum()
    assert chi2 < 94.6, chi2  # 99.99 % quantile with 49 degrees of freedom


@given(st.lists(st.integers(0, 6), min_size=1, max_size=200), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_class_balanced_is_balanced(labels: list[int], capacity: int) -> None:
    """No class that was replaced from is more than one ahead of one that is still arriving."""
    memory = filled(ClassBalanced(capacity), labels)
    counts = memory.counts()
    stored = torch.bincount(memory.all().y, minlength=7).tolist()
    assert counts == {y: n for y, n in enumerate(stored) if n}
    if len(labels) >= capacity:
        assert sum(counts.values()) == capacity
    assert labels[-1] in counts  # the newest sample always enters


def test_class_balanced_shares_evenly() -> None:
    memory = filled(ClassBalanced(30), [0] * 500 + [1] * 500 + [2] * 500)
    counts = memory.counts()
    assert sum(counts.values()) == 30
    assert max(counts.values()) - min(counts.values()) <= 2  # a tie may cost another class one


def test_greedy_balanced_stops_accepting() -> None:
    memory = filled(GreedyBalanced(6), [0] * 20 + [1] * 20)
    assert memory.counts() == {0: 3, 1: 3}
    assert memory.add(torch.zeros(2), 1) is None


def test_ring_keeps_the_latest() -> None:
    memory = filled(Ring(5), range(23))
    assert sorted(memory.all().y.tolist()) == [18, 19, 20, 21, 22]


def test_ring_stays_in_order_when_its_budget_grows() -> None:
    """A full ring has wrapped round; samples after a growth are newer than all before it."""
    memory = Ring(per_class=4)
    memory.allocate(torch.device("cpu"), z=(1,))
    times = iter(range(100))
    for classes in (1, 2, 3):
        memory.set_class_count(classes)
        for _ in range(4 * classes + 2):
            t = next(times)
            memory.add(torch.tensor([float(t)]), classes - 1)
            kept = sorted(memory.all().z.view(-1).int().tolist())
            assert kept == list(range(t + 1 - len(memory), t + 1))
        assert len(memory) == 4 * classes


def test_byte_budget() -> None:
    memory = Reservoir(byte_limit=1000, dtype="float16")
    memory.allocate(torch.device("cpu"), z=(50,))
    assert memory.item_bytes == 50 * 2 + 8
    assert memory.limit == 9


def test_budget_per_class_grows() -> None:
    memory = ClassBalanced(100, per_class=3)
    memory.allocate(torch.device("cpu"), z=(1,))
    for n in range(1, 40):
        memory.set_class_count(n)
        assert memory.limit == min(100, 3 * n)
        for _ in range(5):
            memory.add(torch.zeros(1), n - 1)
        assert len(memory) <= memory.limit
    assert max(memory.counts().values()) - min(memory.counts().values()) <= 2


def test_stores_in_half_precision_draws_in_single() -> None:
    memory = Reservoir(4, dtype="bfloat16")
    memory.allocate(torch.device("cpu"), z=(1,))
    memory.add(torch.tensor([1.001]), 0)
    assert memory.fields["z"].dtype == torch.bfloat16
    assert memory.sample(1).z.dtype == torch.float32


def test_knows_what_its_precision_cannot_hold() -> None:
    largest = {"float32": 3.4e38, "float16": 65519.0, "bfloat16": 3.3e38}  # the second rounds down
    beyond = {"float16": 65520.0, "bfloat16": 3.4e38}
    for dtype, value in largest.items():
        memory = Reservoir(4, dtype=dtype)
        memory.allocate(torch.device("cpu"), z=(2,))
        memory.require_storable(torch.tensor([0.0, -value]))
        if dtype in beyond:
            with pytest.raises(Refused, match=f"too large for a memory of {dtype}"):
                memory.require_storable(torch.tensor([0.0, -beyond[dtype]]))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"capacity": 0},
        {"byte_limit": -1},
        {"capacity": 5, "dtype": "int8"},
        {"per_class": 0},
        {"capacity": 2.5},
        {"capacity": "20"},
        {"capacity": True},
        {"capacity": 5, "seed": -1},
    ],
)
def test_bad_budget(arguments) -> None:
    with pytest.raises(BadSetting):
        Reservoir(**arguments)


def test_one_sample_must_fit_the_bytes() -> None:
    with pytest.raises(BadSetting, match="less than one sample"):
        Reservoir(byte_limit=10).allocate(torch.device("cpu"), z=(50,))


def test_saved_memory_larger_than_the_budget_is_refused() -> None:
    state = filled(Reservoir(10), [0] * 10).state()
    small = Reservoir(5)
    small.allocate(torch.device("cpu"), z=(2,))
    with pytest.raises(BadState, match="budget"):
        small.load_state(state)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(BadSetting, match="reservoir"):
        memories.get("resevoir")
