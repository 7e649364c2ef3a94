"""What must hold when a class leaves a learner."""

from __future__ import annotations

import torch

from verse.checks.worlds import (
    EACH,
    LearnerMaker,
    copy_state,
    learn_all,
    make_learner,
    same,
    small_stream,
)
from verse.learners.base import Learner


def check_forget(make: LearnerMaker) -> None:
    """A forgotten class is never predicted, leaves memory, and the learner still learns."""
    learner = make_learner(make)
    stream = small_stream(learner.F, each=EACH)
    learn_all(learner, stream)
    learner.consolidate()
    gone = stream[0][1]
    learner.forget(gone)
    Z = torch.stack([z for z, _ in stream])
    assert gone not in learner.predict_many(Z)
    assert gone not in learner.predict_proba_one(Z[0])
    assert gone not in learner.labels
    if learner.memory is not None:
        assert set(learner.memory.counts()) <= set(range(len(learner.labels)))
    learn_all(learner, stream[EACH:])
    learner.consolidate()
    assert gone not in learner.predict_many(Z)
    learn_all(learner, stream[:2])  # the label may come back as a new class
    assert learner.labels[-1] == gone


def check_forget_again_and_again(make: LearnerMaker) -> None:
    """A class that is taught and forgotten many times leaves nothing behind: no state grows."""
    learner = make_learner(make)
    stream = small_stream(learner.F, each=EACH)
    learn_all(learner, stream)
    learner.consolidate()
    sizes = []
    for t in range(12):
        for z, _ in stream[:2]:
            learner.learn_one(z, 500 + t)
        if t % 5 == 0:  # long for some
            learner.consolidate()
        learner.forget(500 + t)
        sizes.append(sum(tensor.nbytes for tensor in learner.state().values()))
    assert learner.labels == [10, 11, 12]
    # a field that follows the head keeps the columns it once had; Offline has fewer samples
    assert max(sizes) <= sizes[0], f"the state grew from {sizes[0]} to {max(sizes)} bytes"
    learn_all(learner, stream)


def check_forget_keeps_the_others(make: LearnerMaker) -> None:
    """Whatever belongs to the other classes moves up with them; a saved state says the same."""
    taught = make_learner(make)
    stream = small_stream(taught.F, each=EACH)
    learn_all(taught, stream)
    taught.consolidate()
    for gone in (10, 11, 12):
        learner, twin = make_learner(make), make_learner(make)
        learner.load_state(copy_state(taught))
        before = dict(zip(learner.labels, _label_counts(learner), strict=True))
        learner.forget(gone)
        after = dict(zip(learner.labels, _label_counts(learner), strict=True))
        assert after == {label: n for label, n in before.items() if label != gone}
        twin.load_state(copy_state(learner))
        same(copy_state(learner), copy_state(twin), f"loaded without {gone}")
        for each in (learner, twin):
            learn_all(each, stream[::3])
            each.consolidate()
        same(copy_state(learner), copy_state(twin), f"going on without {gone}")


def _label_counts(learner: Learner) -> list[int]:
    counts = {} if learner.memory is None else learner.memory.counts()
    return [counts.get(output, 0) for output in range(len(learner.labels))]


def check_merge(make: LearnerMaker) -> None:
    """Two classes become one, whichever came first; what memory holds of both is of the one."""
    taught = make_learner(make)
    stream = small_stream(taught.F, each=EACH)
    learn_all(taught, stream)
    for gone, into in ((10, 12), (12, 10)):
        learner = make_learner(make)
        learner.load_state(copy_state(taught))
        held = dict(zip(learner.labels, _label_counts(learner), strict=True))
        learner.merge(gone, into)
        assert gone not in learner.labels and len(learner.labels) == 2
        now = dict(zip(learner.labels, _label_counts(learner), strict=True))
        assert now == {into: held[gone] + held[into], 11: held[11]}
        learn_all(learner, stream[EACH : 2 * EACH])
        learner.consolidate()
        assert set(learner.predict_many(torch.stack([z for z, _ in stream]))) <= {11, into}
