"""Saved to a file at any moment, loaded, continued: the same bits as never having stopped."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verse import checkpoint, learners, memory
from verse.checks import small_network
from verse.checks.worlds import same
from verse.learners.base import Learner

# Deferred learning is short, and triggers and codecs fall into the stream.
QUICK = {"epochs": 2, "passes": 2, "base": 8, "trigger": "every:5", "predict_draws": 5, "M": 64}
F = small_network()


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[int], int, int]:
    """(labels, where it is saved, where it is tested); new classes may come at any time."""
    labels = draw(st.lists(st.integers(0, 30), min_size=1, max_size=36))
    places = st.integers(0, len(labels))
    return labels, draw(places), draw(places)


@pytest.mark.parametrize("name", learners.names())
@given(
    stream=streams(),
    rule=st.sampled_from(memory.names()),
    budget=st.sampled_from([{"capacity": 1}, {"capacity": 9}, {"per_class": 2}]),
    dtype=st.sampled_from(["float32", "float16"]),
)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_stopping_anywhere_changes_no_bit(
    name: str,
    stream: tuple[list[int], int, int],
    rule: str,
    budget: dict[str, int],
    dtype: str,
) -> None:
    labels, stop, event = stream
    chosen = {k: v for k, v in QUICK.items() if k in learners.settings(name)}
    Z = torch.randn(len(labels), *F.z_shape, generator=torch.Generator().manual_seed(0))

    def fresh() -> Learner:
        store = memory.get(rule)(**budget, dtype=dtype, seed=3)
        return learners.build(name, F, store, seed=3, **chosen)

    def go_on(learner: Learner, begin: int, end: int) -> None:
        for t in range(begin, end):
            if t == event:
                learner.consolidate()
            learner.learn_one(Z[t], labels[t])

    whole = fresh()
    go_on(whole, 0, stop)
    saved = checkpoint.to_bytes(whole.state(), {"name": name})
    go_on(whole, stop, len(labels))
    whole.consolidate()
    resumed = fresh()
    resumed.load_state(checkpoint.from_bytes(saved, "the file")[0])
    go_on(resumed, stop, len(labels))
    resumed.consolidate()
    same(whole.state(), resumed.state(), f"{name}, {rule}, saved at {stop} of {len(labels)}")
    assert torch.equal(whole.predict_proba_many(Z), resumed.predict_proba_many(Z))
