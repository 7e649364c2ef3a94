"""GEM: the quadratic program, pseudo-tasks, bounds."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls
from torch.nn.functional import cross_entropy

from tests.learners.reference import Reference, flat_of, mixed
from verse.checks import small_network, small_stream
from verse.kernels.projection import solve_bounded, turn_from_all
from verse.learners import GEM
from verse.memory import Reservoir
from verse.types import MissingExtra


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([0.0, 0.5]), st.floats(-4, 4))
def test_no_reference_is_pointed_against(seed: int, t: int, margin: float, size: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    G = torch.randn(t, 60, generator=generator) * 10**size
    G[-1] = G[0]  # two equal references make the program singular
    g = torch.randn(60, generator=generator) * 10**size - 0.4 * G.sum(0)
    turned = turn_from_all(g, G, margin)
    slack = 1e-4 * float(g.norm()) * G.norm(dim=1)
    assert bool((G @ turned >= -slack).all())


def test_without_conflict_the_gradient_is_untouched() -> None:
    g = torch.tensor([1.0, 2.0])
    assert turn_from_all(g, torch.eye(2), 0.5) is g


def test_the_solution_is_that_of_another_solver() -> None:
    """With margin 0 the program is a non-negative least squares, which scipy solves."""
    rng = np.random.default_rng(0)
    for t in (1, 3, 8):
        G, g = rng.normal(size=(t, 30)), rng.normal(size=30)
        v, _ = nnls(G.T, -g)  # min ‖Gᵀv + g‖, v ≥ 0
        np.testing.assert_allclose(solve_bounded(G @ G.T, G @ g, 0.0), v, atol=1e-4)


def test_with_one_reference_and_no_margin_it_is_agem() -> None:
    from verse.kernels.projection import turn_from

    g, r = torch.tensor([1.0, -3.0, 0.5]), torch.tensor([0.5, 1.0, 0.0])
    torch.testing.assert_close(
        turn_from_all(g, r[None], 0.0), turn_from(g, r), rtol=1e-4, atol=1e-5
    )


def test_a_run_by_autograd() -> None:
    """Pseudo-tasks of 9 samples, all kept and all drawn; the program solved by scipy instead."""
    F, lr, every, margin, turned = small_network(), 0.05, 9, 0.5, 0
    ours = GEM(F, Reservoir(100), C=100, lr=lr, trigger=f"every:{every}", margin=margin, clip=None)
    ref = Reference(F, classes=3)
    seen: list[tuple[torch.Tensor, int]] = []
    for t, (z, label) in enumerate(mixed(small_stream(F))):
        y = ref.welcome(label)
        g = ref.gradient(cross_entropy(ref.scores(z[None]), torch.tensor([y])))
        rows = []
        for first in range(0, t // every * every, every):
            past = seen[first : first + every]
            s = ref.scores(torch.stack([p for p, _ in past]))
            rows.append(ref.gradient(cross_entropy(s, torch.tensor([k for _, k in past]))))
        if rows and bool((torch.stack(rows) @ g < 0).any()):
            turned += 1
            G = torch.stack(rows)
            # v = margin + w with w ≥ 0: again a non-negative least squares
            w, _ = nnls(G.T.numpy(), -(g + margin * G.sum(0)).numpy())
            g = g + G.T @ (margin + torch.from_numpy(w))
        ref.move(-lr * g)
        seen.append((z, y))
        ours.learn_one(z, label)
    assert turned > 3 and ours.stretch == 3
    torch.testing.assert_close(flat_of(ours.theta, 3), ref.flat, rtol=1e-3, atol=1e-4)


def test_references_are_bounded_and_cover_all_past_samples() -> None:
    F = small_network("linear")
    learner = GEM(F, Reservoir(30), trigger="every:2", references=4)
    for z, y in mixed(small_stream(F)):
        learner.learn_one(z, y)
    past = learner.past()
    assert len(past) == 4
    slots = torch.cat(past)
    stretch = learner.memory.fields["stretch"][: len(learner.memory)]
    assert sorted(slots.tolist()) == torch.nonzero(stretch < learner.stretch)[:, 0].tolist()
    ends = [(float(stretch[p].min()), float(stretch[p].max())) for p in past]
    assert all(a[1] < b[0] for a, b in itertools.pairwise(ends)), "runs in time order"


def test_without_the_solver_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "daqp", None)
    with pytest.raises(MissingExtra, match=r"\[qp\]"):
        GEM(small_network("linear"), Reservoir(4))
