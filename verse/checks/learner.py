"""What must hold for any learner."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable

import torch
from torch import Tensor

from verse.backbones.plastic import Plastic
from verse.checks.worlds import Stream, same, small_network, small_stream
from verse.learners.base import Learner
from verse.learners.network import Net
from verse.memory.base import Memory
from verse.memory.class_balanced import ClassBalanced
from verse.types import Refused

LearnerMaker = Callable[[Plastic, Memory, int], Learner]
"""Builds the learner under test from F, a memory and a seed."""
CAPACITY = 24
"""Samples that the memory of a learner under test holds."""


def _learner(make: LearnerMaker, F: Plastic | None = None, seed: int = 0) -> Learner:
    return make(F or small_network(), ClassBalanced(CAPACITY, seed=seed), seed)


def _learn(learner: Learner, stream: Stream) -> None:
    for z, y in stream:
        learner.learn_one(z, y)


def _frozen(learner: Learner) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in learner.state().items()}


def check_predicts_before_learning(make: LearnerMaker) -> None:
    """Before the first sample the answer is None and there are no probabilities."""
    learner = _learner(make)
    z = torch.zeros(learner.F.z_shape)
    assert learner.predict_one(z) is None
    assert learner.predict_proba_one(z) == {}
    assert learner.predict_many(z.unsqueeze(0)) == [None]


def check_prediction_changes_nothing(make: LearnerMaker) -> None:
    """Predicting, in any form, leaves the whole state as it was."""
    learner = _learner(make)
    stream = small_stream(learner.F)
    _learn(learner, stream[:20])
    learner.consolidate()
    before = _frozen(learner)
    Z = torch.stack([z for z, _ in stream])
    first = learner.predict_proba_many(Z)
    learner.predict_one(Z[0])
    learner.predict_proba_one(Z[0])
    learner.predict_many(Z)
    assert torch.equal(first, learner.predict_proba_many(Z)), "two equal questions, two answers"
    same(before, _frozen(learner), "after predicting")


def check_inputs_unchanged(make: LearnerMaker) -> None:
    """The feature handed over is not written to, and later changes to it have no effect."""
    learner, twin = _learner(make), _learner(make)
    stream = small_stream(learner.F, classes=2, each=5)
    for z, y in stream:
        mine, before = z.clone(), z.clone()
        learner.learn_one(mine, y)
        assert torch.equal(mine, before), "learn_one wrote to its input"
        mine.fill_(7.0)
        twin.learn_one(z, y)
    same(_frozen(learner), _frozen(twin), "after overwriting inputs")


def check_probabilities(make: LearnerMaker) -> None:
    """Probabilities are finite, not negative, and sum to one over the classes seen."""
    learner = _learner(make)
    for z, y in small_stream(learner.F, classes=2, each=6):
        learner.learn_one(z, y)
        p = learner.predict_proba_one(z)
        assert set(p) == set(learner.labels)
        assert all(math.isfinite(v) and v >= 0 for v in p.values())
        assert abs(sum(p.values()) - 1) < 1e-4


def check_new_class_midstream(make: LearnerMaker) -> None:
    """Classes arrive at any time and in any order of labels; outputs follow order of arrival."""
    learner = _learner(make)
    z = torch.randn(learner.F.z_shape, generator=torch.Generator().manual_seed(1))
    order = [5, 3, 99, 0, *range(200, 216)]  # more than one allocation of the head
    for t, y in enumerate(order):
        learner.learn_one(z + t, y)
        assert learner.labels == order[: t + 1]
        learner.learn_one(z, order[0])
        assert learner.predict_one(z) in order[: t + 1]


def check_same_seed_same_weights(make: LearnerMaker) -> None:
    """Everything random comes from the seed."""
    a, b = _learner(make, seed=3), _learner(make, seed=3)
    torch.manual_seed(1)
    _learn(a, small_stream(a.F))
    a.consolidate()
    torch.manual_seed(2)
    _learn(b, small_stream(b.F))
    b.consolidate()
    same(_frozen(a), _frozen(b), "same seed")


def check_clone_independent(make: LearnerMaker) -> None:
    """A copy learns on its own; the original does not notice."""
    learner = _learner(make)
    stream = small_stream(learner.F)
    _learn(learner, stream[:20])
    twin = _learner(make)
    twin.load_state(_frozen(learner))
    before = _frozen(learner)
    _learn(twin, stream[20:])
    same(before, _frozen(learner), "after its copy learned")
    for copied in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):  # noqa: S301
        _learn(copied, stream[20:])
        same(before, _frozen(learner), "after its copy learned")
        same(_frozen(twin), _frozen(copied), "a copy that went on")


def check_exact_resume(make: LearnerMaker) -> None:
    """Saved at any step, loaded elsewhere, continued: no bit differs from never having stopped."""
    F = small_network()
    stream = small_stream(F, classes=18, each=3)
    whole = _learner(make, F)
    stops = {0, 1, 7, 31, 48, 50, 53}
    saved: dict[int, dict[str, Tensor]] = {}
    for t, (z, y) in enumerate(stream):
        if t in stops:
            saved[t] = _frozen(whole)
        whole.learn_one(z, y)
    whole.consolidate()
    for t, state in saved.items():
        resumed = _learner(make, F, seed=0)
        # unaligned storage, as tensors read from a file have
        resumed.load_state({k: _unaligned(v) for k, v in state.items()})
        same(state, _frozen(resumed), f"loaded at step {t}")
        _learn(resumed, stream[t:])
        resumed.consolidate()
        same(_frozen(whole), _frozen(resumed), f"resumed at step {t}")


def _unaligned(t: Tensor) -> Tensor:
    raw = torch.zeros(t.numel() + 1, dtype=t.dtype)
    raw[1:] = t.reshape(-1)
    return raw[1:].view(t.shape)


def check_capacity_never_exceeded(make: LearnerMaker) -> None:
    """The memory holds at most what its budget says, at every step."""
    learner = _learner(make)
    for z, y in small_stream(learner.F, classes=4, each=15):
        learner.learn_one(z, y)
        if learner.memory is not None:
            assert len(learner.memory) <= learner.memory.limit


def check_learns_separable_stream(make: LearnerMaker) -> None:
    """Two far clusters, alternating, 60 samples: at least 9 of 10 right."""
    F = small_network()
    learner = _learner(make, F)
    stream = small_stream(F, classes=2, each=30)
    mixed = [s for pair in zip(stream[:30], stream[30:], strict=True) for s in pair]
    for _ in range(3):
        _learn(learner, mixed)
    learner.consolidate()
    answers = learner.predict_many(torch.stack([z for z, _ in mixed]))
    right = sum(a == y for a, (_, y) in zip(answers, mixed, strict=True))
    assert right >= 0.9 * len(mixed), f"{right} of {len(mixed)} right on two separable clusters"


def check_survives_exception(make: LearnerMaker) -> None:
    """An error or Ctrl-C in any gradient of a step, or behind it, leaves everything as it was."""
    places: tuple[tuple[type, str], ...] = ((Net, "body_gradient"), (Learner, "clip_scale"))
    for kind in (RuntimeError, KeyboardInterrupt):
        for nth in range(3):  # the first, second and third gradient of the step
            for owner, method in places:
                _survives(make, _failing(owner, method, nth, kind), kind)


def _survives(make: LearnerMaker, failure: _failing, kind: type[BaseException]) -> None:
    learner = _learner(make)
    stream = small_stream(learner.F)
    _learn(learner, stream[:20])
    before = _frozen(learner)
    with failure as failed:
        try:
            learner.learn_one(stream[20][0], 777)  # a new class: growth is undone too
        except kind:
            assert failed
    if not failed:  # the method computes fewer gradients
        return
    same(before, _frozen(learner), f"after {failure}")
    twin = _learner(make)
    _learn(twin, stream[:20])
    for each in (learner, twin):
        _learn(each, stream[20:])
    same(_frozen(twin), _frozen(learner), f"going on after {failure}")


class _failing:
    """Make the n-th call of a method inside the block raise once it has done its work."""

    def __init__(self, owner: type, method: str, nth: int, error: type[BaseException]) -> None:
        self.owner, self.method, self.nth, self.error = owner, method, nth, error
        self.failed: list[bool] = []

    def __str__(self) -> str:
        return f"{self.error.__name__} in call {self.nth + 1} of {self.method}"

    def __enter__(self) -> list[bool]:
        self.original, count = getattr(self.owner, self.method), 0

        def call(*args: object, **kwargs: object) -> object:
            nonlocal count
            count += 1
            result = self.original(*args, **kwargs)
            if count == self.nth + 1:
                self.failed.append(True)
                raise self.error("made to fail")
            return result

        setattr(self.owner, self.method, call)
        return self.failed

    def __exit__(self, *_: object) -> None:
        setattr(self.owner, self.method, self.original)


def check_refuses_nonfinite(make: LearnerMaker) -> None:
    """A feature with NaN or infinity is refused and leaves no trace."""
    learner = _learner(make)
    stream = small_stream(learner.F)
    _learn(learner, stream[:10])
    before = _frozen(learner)
    for bad in (math.nan, math.inf, -math.inf):
        z = stream[10][0].clone()
        z.view(-1)[0] = bad
        try:
            learner.learn_one(z, 777)
        except Refused:
            pass
        else:
            raise AssertionError(f"a feature with {bad} was learned")
        same(before, _frozen(learner), f"after a feature with {bad}")


def check_one_class_one_sample(make: LearnerMaker) -> None:
    """One sample is enough to answer; one class alone is learned without trouble."""
    learner = _learner(make)
    stream = small_stream(learner.F, classes=1)
    learner.learn_one(*stream[0])
    assert learner.predict_one(stream[0][0]) == stream[0][1]
    _learn(learner, stream[1:])
    learner.consolidate()
    assert learner.predict_one(stream[0][0]) == stream[0][1]
    assert all(bool(torch.isfinite(t).all()) for t in learner.state().values())


def check_float16_memory(make: LearnerMaker) -> None:
    """A memory that stores half precision works, resumes exactly, and never holds an infinity.

    A feature that is too large for it is refused without a trace, unless the method stores
    something else of it.
    """
    F = small_network()
    stream = small_stream(F)
    a, b = (make(F, ClassBalanced(CAPACITY, dtype="float16"), 0) for _ in range(2))
    _learn(a, stream[:15])
    b.load_state(_frozen(a))
    _learn(a, stream[15:])
    _learn(b, stream[15:])
    same(_frozen(a), _frozen(b), "resumed with a half-precision memory")
    for large in (1e5, -1e5, 1e30):
        before = _frozen(a)
        z = stream[0][0].clone()
        z.view(-1)[0] = large
        try:
            a.learn_one(z, 777)  # a new class, which every rule makes room for
        except Refused:
            same(before, _frozen(a), f"after a feature with {large}")
        a.learn_one(*stream[0])  # it goes on
        state = {name: t for name, t in _frozen(a).items() if name.startswith("memory.")}
        assert all(bool(torch.isfinite(t).all()) for t in state.values()), f"{large} is in memory"


def check_linear_network(make: LearnerMaker) -> None:
    """A network that is a head alone, on plain feature vectors."""
    F = small_network("linear")
    learner = _learner(make, F)
    stream = small_stream(F)
    _learn(learner, stream)
    learner.consolidate()
    assert learner.predict_one(stream[0][0]) in learner.labels


def check_forget(make: LearnerMaker) -> None:
    """A forgotten class never answers again, leaves memory, and the learner goes on."""
    learner = _learner(make)
    stream = small_stream(learner.F)
    _learn(learner, stream)
    learner.consolidate()
    gone = stream[0][1]
    learner.forget(gone)
    Z = torch.stack([z for z, _ in stream])
    assert gone not in learner.predict_many(Z)
    assert gone not in learner.predict_proba_one(Z[0])
    if learner.memory is not None:
        assert learner.labels.index(gone) not in learner.memory.counts()
    _learn(learner, stream[12:])
    learner.consolidate()
    assert gone not in learner.predict_many(Z)
    _learn(learner, stream[:2])  # the label may come back as a new class
    assert learner.labels.count(gone) == 2


def check_settings_rebuild(make: LearnerMaker) -> None:
    """The constructor's keyword arguments are kept under their names."""
    learner = _learner(make)
    for name, value in learner.settings().items():
        assert getattr(learner, name) == value
    assert copy.deepcopy(learner.settings()) == learner.settings()


LEARNER_CHECKS: tuple[Callable[[LearnerMaker], None], ...] = (
    check_predicts_before_learning,
    check_prediction_changes_nothing,
    check_inputs_unchanged,
    check_probabilities,
    check_new_class_midstream,
    check_same_seed_same_weights,
    check_clone_independent,
    check_exact_resume,
    check_capacity_never_exceeded,
    check_learns_separable_stream,
    check_survives_exception,
    check_refuses_nonfinite,
    check_one_class_one_sample,
    check_float16_memory,
    check_linear_network,
    check_forget,
    check_settings_rebuild,
)
"""All checks of a learner, in the order of what they need."""


def check_learner(make: LearnerMaker) -> None:
    """Run the whole suite for one learner; ``make(F, memory, seed)`` builds it.

    >>> from verse.learners import TinyER
    >>> check_learner(lambda F, memory, seed: TinyER(F, memory, lr=0.1, seed=seed))
    """
    for check in LEARNER_CHECKS:
        check(make)
