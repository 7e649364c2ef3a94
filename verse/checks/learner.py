"""What must hold for any learner."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from verse.checks.forgetting import (
    check_forget,
    check_forget_again_and_again,
    check_forget_keeps_the_others,
    check_merge,
)
from verse.checks.worlds import (
    CAPACITY,
    EACH,
    LearnerMaker,
    copy_state,
    learn_all,
    make_learner,
    same,
    small_network,
    small_stream,
)
from verse.learners.base import Learner
from verse.memory.class_balanced import ClassBalanced
from verse.network.net import Net
from verse.types import BadSetting, Refused


def check_predicts_before_learning(make: LearnerMaker) -> None:
    """Before the first sample the answer is None and there are no probabilities."""
    learner = make_learner(make)
    z = torch.zeros(learner.F.z_shape)
    assert learner.predict_one(z) is None
    assert learner.predict_proba_one(z) == {}
    assert learner.predict_many(z.unsqueeze(0)) == [None]


def check_prediction_changes_nothing(make: LearnerMaker) -> None:
    """Predicting, in any form, leaves the whole state as it was."""
    learner = make_learner(make)
    stream = small_stream(learner.F, each=EACH)
    learn_all(learner, stream[:18])
    learner.consolidate()
    before = copy_state(learner)
    Z = torch.stack([z for z, _ in stream])
    first = learner.predict_proba_many(Z)
    learner.predict_one(Z[0])
    learner.predict_proba_one(Z[0])
    learner.predict_many(Z)
    assert torch.equal(first, learner.predict_proba_many(Z)), "two equal questions, two answers"
    same(before, copy_state(learner), "after predicting")


def check_inputs_unchanged(make: LearnerMaker) -> None:
    """The feature handed over is not written to, and later changes to it have no effect."""
    learner, twin = make_learner(make), make_learner(make)
    stream = small_stream(learner.F, classes=2, each=5)
    for z, y in stream:
        mine, before = z.clone(), z.clone()
        learner.learn_one(mine, y)
        assert torch.equal(mine, before), "learn_one wrote to its input"
        mine.fill_(7.0)
        twin.learn_one(z, y)
    same(copy_state(learner), copy_state(twin), "after overwriting inputs")


def check_probabilities(make: LearnerMaker) -> None:
    """Probabilities are finite, not negative, and sum to one over the classes seen."""
    learner = make_learner(make)
    for z, y in small_stream(learner.F, classes=2, each=6):
        learner.learn_one(z, y)
        p = learner.predict_proba_one(z)
        assert set(p) == set(learner.labels)
        assert all(math.isfinite(v) and v >= 0 for v in p.values())
        assert abs(sum(p.values()) - 1) < 1e-4


def check_new_class_midstream(make: LearnerMaker) -> None:
    """Classes arrive at any time and in any order of labels; outputs follow order of arrival."""
    learner = make_learner(make)
    z = torch.randn(learner.F.z_shape, generator=torch.Generator().manual_seed(1))
    order = [5, 3, 99, 0, *range(200, 216)]  # more than one allocation of the head
    for t, y in enumerate(order):
        learner.learn_one(z + t, y)
        assert learner.labels == order[: t + 1]
        learner.learn_one(z, order[0])
        assert learner.predict_one(z) in order[: t + 1]


def check_same_seed_same_weights(make: LearnerMaker) -> None:
    """Everything random comes from the seed."""
    a, b = make_learner(make, seed=3), make_learner(make, seed=3)
    torch.manual_seed(1)
    learn_all(a, small_stream(a.F, each=EACH))
    a.consolidate()
    torch.manual_seed(2)
    learn_all(b, small_stream(b.F, each=EACH))
    b.consolidate()
    same(copy_state(a), copy_state(b), "same seed")


def check_clone_independent(make: LearnerMaker) -> None:
    """A copy learns on its own; the original does not notice."""
    learner = make_learner(make)
    stream = small_stream(learner.F, each=EACH)
    learn_all(learner, stream[:18])
    twin = make_learner(make)
    twin.load_state(copy_state(learner))
    before = copy_state(learner)
    learn_all(twin, stream[18:])
    same(before, copy_state(learner), "after its copy learned")
    for copied in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):  # noqa: S301
        learn_all(copied, stream[18:])
        same(before, copy_state(learner), "after its copy learned")
        same(copy_state(twin), copy_state(copied), "a copy that went on")


def check_exact_resume(make: LearnerMaker) -> None:
    """Saved at any step, loaded elsewhere, continued: no bit differs from never having stopped."""
    F = small_network()
    stream = small_stream(F, classes=18, each=2)  # the head grows once
    whole = make_learner(make, F)
    stops = (0, 1, 7, 22, 32, 34, 35, len(stream))
    saved: dict[int, dict[str, Tensor]] = {}
    for t, (z, y) in enumerate(stream):
        if t in stops:
            saved[t] = copy_state(whole)
        whole.learn_one(z, y)
    whole.consolidate()
    saved[len(stream)] = copy_state(whole)
    for t, later in pairwise(stops):  # from stop to stop, and so from any stop to the end
        resumed = make_learner(make, F, seed=0)
        # unaligned storage, as tensors read from a file have
        resumed.load_state({k: _unalign(v) for k, v in saved[t].items()})
        same(saved[t], copy_state(resumed), f"loaded at step {t}")
        learn_all(resumed, stream[t:later])
        if later == len(stream):
            resumed.consolidate()
        same(saved[later], copy_state(resumed), f"resumed at step {t}")


def _unalign(t: Tensor) -> Tensor:
    raw = torch.zeros(t.numel() + 1, dtype=t.dtype)
    raw[1:] = t.reshape(-1)
    return raw[1:].view(t.shape)


def check_capacity_never_exceeded(make: LearnerMaker) -> None:
    """The memory holds at most what its budget says, at every step."""
    learner = make_learner(make)
    for z, y in small_stream(learner.F, classes=4, each=10):
        learner.learn_one(z, y)
        if learner.memory is not None:
            assert len(learner.memory) <= learner.memory.limit


def check_learns_separable_stream(make: LearnerMaker) -> None:
    """Two far clusters, alternating, 60 samples: at least 9 of 10 right."""
    F = small_network()
    learner = make_learner(make, F)
    stream = small_stream(F, classes=2, each=30)
    mixed = [s for pair in zip(stream[:30], stream[30:], strict=True) for s in pair]
    for _ in range(3):
        learn_all(learner, mixed)
    learner.consolidate()
    answers = learner.predict_many(torch.stack([z for z, _ in mixed]))
    right = sum(a == y for a, (_, y) in zip(answers, mixed, strict=True))
    assert right >= 0.9 * len(mixed), f"{right} of {len(mixed)} right on two separable clusters"


def check_survives_exception(make: LearnerMaker) -> None:
    """An error or Ctrl-C in any gradient of a step, or behind it, leaves everything as it was."""
    places: tuple[tuple[type, str], ...] = ((Net, "body_gradient"), (Learner, "require_finite"))
    untouched = make_learner(make)
    stream = small_stream(untouched.F, each=EACH)[:22]
    learn_all(untouched, stream[:18])
    before = copy_state(untouched)
    learn_all(untouched, stream[18:])
    after = copy_state(untouched)
    for kind in (RuntimeError, KeyboardInterrupt):
        for owner, method in places:
            for nth in range(3):  # the first, second and third gradient of the step
                learner = make_learner(make)
                learner.load_state({name: tensor.clone() for name, tensor in before.items()})
                with (failure := _failing(owner, method, nth, kind)) as failed:
                    try:
                        learner.learn_one(stream[18][0], 777)  # a new class: growth is undone too
                    except kind:
                        assert failed
                if not failed:  # the method computes fewer gradients
                    break
                same(before, copy_state(learner), f"after {failure}")
                learn_all(learner, stream[18:])
                same(after, copy_state(learner), f"going on after {failure}")


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
    learner = make_learner(make)
    stream = small_stream(learner.F, each=EACH)
    learn_all(learner, stream[:10])
    before = copy_state(learner)
    for bad in (math.nan, math.inf, -math.inf):
        z = stream[10][0].clone()
        z.view(-1)[0] = bad
        try:
            learner.learn_one(z, 777)
        except Refused:
            pass
        else:
            raise AssertionError(f"a feature with {bad} was learned")
        same(before, copy_state(learner), f"after a feature with {bad}")


def check_one_class_one_sample(make: LearnerMaker) -> None:
    """One sample is enough to answer; one class alone is learned without trouble."""
    learner = make_learner(make)
    stream = small_stream(learner.F, classes=1, each=EACH)
    learner.learn_one(*stream[0])
    assert learner.predict_one(stream[0][0]) == stream[0][1]
    learn_all(learner, stream[1:])
    learner.consolidate()
    assert learner.predict_one(stream[0][0]) == stream[0][1]
    assert all(bool(torch.isfinite(t).all()) for t in learner.state().values())


def check_float16_memory(make: LearnerMaker) -> None:
    """A memory that stores half precision works, resumes exactly, and never holds an infinity.

    A feature that is too large for it is refused without a trace, unless the method stores
    something else of it.
    """
    F = small_network()
    stream = small_stream(F, each=EACH)
    a, b = (make(F, ClassBalanced(CAPACITY, dtype="float16"), 0) for _ in range(2))
    learn_all(a, stream[:15])
    b.load_state(copy_state(a))
    learn_all(a, stream[15:])
    learn_all(b, stream[15:])
    same(copy_state(a), copy_state(b), "resumed with a half-precision memory")
    for large in (1e5, -1e5, 1e30):
        before = copy_state(a)
        z = stream[0][0].clone()
        z.view(-1)[0] = large
        try:
            a.learn_one(z, 777)  # a new class, which every rule makes room for
        except Refused:
            same(before, copy_state(a), f"after a feature with {large}")
        a.learn_one(*stream[0])  # it goes on
        state = {name: t for name, t in copy_state(a).items() if name.startswith("memory.")}
        assert all(bool(torch.isfinite(t).all()) for t in state.values()), f"{large} is in memory"


def check_linear_network(make: LearnerMaker) -> None:
    """A network that is a head alone, on plain feature vectors."""
    F = small_network("linear")
    learner = make_learner(make, F)
    stream = small_stream(F, each=EACH)
    learn_all(learner, stream)
    learner.consolidate()
    assert learner.predict_one(stream[0][0]) in learner.labels


def check_refuses_what_is_far_off(make: LearnerMaker) -> None:
    """A finite feature that is far from all others is refused, and later ones are learned."""
    learner, twin = make_learner(make), make_learner(make)
    stream = small_stream(learner.F, each=EACH)
    for each in (learner, twin):
        learn_all(each, stream[:18])
    try:
        learner.learn_one(torch.full(learner.F.z_shape, 1e15), stream[18][1])
    except Refused:
        pass
    else:
        raise AssertionError("a feature of 1e15 was learned")
    for each in (learner, twin):
        learn_all(each, stream[18:])
    same(copy_state(twin), copy_state(learner), "going on after a feature of 1e15")
    bad = torch.full((1, *learner.F.z_shape), math.nan)
    try:
        learner.predict_proba_many(bad)
    except Refused:
        return
    raise AssertionError("there was an answer to a feature that is not finite")


def check_settings_rebuild(make: LearnerMaker) -> None:
    """A learner made again from its own settings is the same, sample by sample."""
    learner = make_learner(make)
    memory = None if learner.memory is None else type(learner.memory)(**learner.memory.settings())
    again = type(learner)(learner.F, memory, **learner.settings())
    assert again.settings() == learner.settings()
    for each in (learner, again):
        learn_all(each, small_stream(learner.F, each=EACH))
        each.consolidate()
    same(copy_state(learner), copy_state(again), "made again from its settings")


def check_exported_network(make: LearnerMaker) -> None:
    """The network for export answers as the learner does, or the learner refuses to give one."""
    for kind in ("conv", "linear"):
        learner = make_learner(make, small_network(kind))
        stream = small_stream(learner.F, each=EACH)
        learn_all(learner, stream)
        learner.consolidate()
        Z = torch.stack([z for z, _ in stream])
        try:
            network = learner.network()
        except BadSetting:
            continue
        with torch.no_grad():
            exported = torch.softmax(network(Z).float(), 1)
        p = learner.predict_proba_many(Z)
        equal = exported.shape == p.shape and torch.allclose(exported, p, rtol=1e-3, atol=1e-4)
        assert equal, "network() does not compute what logits() computes: write both, or neither"


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
    check_forget_again_and_again,
    check_forget_keeps_the_others,
    check_merge,
    check_refuses_what_is_far_off,
    check_settings_rebuild,
    check_exported_network,
)
"""All checks of a learner, in the order of what they need."""


def check_learner(make: LearnerMaker, watch: Callable[[str], None] | None = None) -> None:
    """Run the whole suite for one learner; ``make(F, memory, seed)`` builds it.

    It takes half a minute or more; ``watch=print`` says which check is under way.

    >>> from verse.learners import TinyER
    >>> check_learner(lambda F, memory, seed: TinyER(F, memory, lr=0.1, seed=seed))
    """
    for check in LEARNER_CHECKS:
        if watch is not None:
            watch(check.__name__)
        check(make)
