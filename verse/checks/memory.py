"""What must hold for any memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from verse.checks.worlds import same
from verse.memory.base import Memory

MemoryMaker = Callable[[int, int], Memory]
"""Builds the memory under test from a capacity and a seed."""


def _offers(classes: int, n: int, seed: int = 0) -> Iterator[tuple[Tensor, int]]:
    generator = torch.Generator().manual_seed(seed)
    for t in range(n):
        y = int(torch.randint(classes, (1,), generator=generator))
        yield torch.full((3,), float(t)), y


def _memory(make: MemoryMaker, capacity: int = 8, seed: int = 0) -> Memory:
    memory = make(capacity, seed)
    needs = {name: (3,) * dimensions for name, dimensions in memory.NEEDS.items()}
    memory.allocate(torch.device("cpu"), z=(3,), **needs)
    return memory


def _add(memory: Memory, z: Tensor, y: int) -> int | None:
    """Offer a sample with whatever else the memory asks for."""
    return memory.add(z, y, **{name: z if n else z.mean() for name, n in memory.NEEDS.items()})


def check_memory_bounded(make: MemoryMaker) -> None:
    """Never more than the budget, for a budget of one as for a large one."""
    for capacity in (1, 5, 64):
        memory = _memory(make, capacity)
        for z, y in _offers(4, 200):
            memory.set_class_count(4)
            _add(memory, z, y)
            assert len(memory) <= capacity
        assert sum(memory.counts().values()) == len(memory)


def check_memory_draws(make: MemoryMaker) -> None:
    """A draw has min(n, len) different items, all of them in memory."""
    memory = _memory(make)
    assert len(memory.sample(4)) == 0
    for t, (z, y) in enumerate(_offers(3, 30)):
        _add(memory, z, y)
        index = memory.draw(4)
        assert len(index) == min(4, len(memory)) and len(set(index.tolist())) == len(index)
        batch = memory.sample(4)
        assert batch.z.dtype == torch.float32 and bool((batch.z <= t).all())


def check_memory_resume(make: MemoryMaker) -> None:
    """A memory that is saved and loaded makes the same choices and draws as before."""
    offers = list(_offers(5, 80))
    for stop in (0, 3, 8, 40):
        a, b = _memory(make), _memory(make, seed=9)
        for z, y in offers[:stop]:
            _add(a, z, y)
            a.sample(2)
        b.load_state({k: v.clone() for k, v in a.state().items()})
        for z, y in offers[stop:]:
            assert _add(a, z, y) == _add(b, z, y)
            assert torch.equal(a.draw(3), b.draw(3))
        same(a.state(), b.state(), f"memory resumed at {stop}")


def check_memory_discard(make: MemoryMaker) -> None:
    """Discarding a class removes all of it and nothing else; the memory still works."""
    memory = _memory(make)
    for z, y in _offers(3, 30):
        _add(memory, z, y)
    counts = memory.counts()
    gone = next(iter(counts))
    assert memory.discard(gone) == counts.pop(gone)
    assert memory.counts() == counts
    for z, y in _offers(3, 30, seed=1):
        _add(memory, z, y)
        assert len(memory) <= 8


def check_memory_closes_gaps(make: MemoryMaker) -> None:
    """When a class leaves, those behind it move up, and a saved state says the same."""
    for into in (None, 0, 2):
        memory, twin = _memory(make), _memory(make, seed=9)
        memory.set_class_count(4)
        for z, y in _offers(4, 60):
            _add(memory, z, y)
        counts = [memory.counts().get(y, 0) for y in range(4)]
        assert memory.drop_class(1, into, 3) == counts[1]
        if into is not None:
            counts[into] += counts[1]
        del counts[1]
        assert [memory.counts().get(y, 0) for y in range(3)] == counts
        twin.load_state({k: v.clone() for k, v in memory.state().items()})
        for z, y in _offers(3, 30, seed=1):
            assert _add(memory, z, y) == _add(twin, z, y)
        same(memory.state(), twin.state(), "memory without one of its classes")


MEMORY_CHECKS: tuple[Callable[[MemoryMaker], None], ...] = (
    check_memory_bounded,
    check_memory_draws,
    check_memory_resume,
    check_memory_discard,
    check_memory_closes_gaps,
)
"""All checks of a memory."""


def check_memory(make: MemoryMaker) -> None:
    """Run the whole suite for one memory; ``make(capacity, seed)`` builds it.

    >>> from verse.memory import Reservoir
    >>> check_memory(lambda capacity, seed: Reservoir(capacity, seed=seed))
    """
    for check in MEMORY_CHECKS:
        check(make)
