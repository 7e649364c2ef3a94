"""The statistics of verse-lda alone: the same scores as verse-lda whose network has no say."""

from __future__ import annotations

import torch

from verse.checks import small_network
from verse.learners import VERSELDA, SLDAQuarters
from verse.memory import ClassBalanced


def _taught(learner):
    g = torch.Generator().manual_seed(0)
    for t in range(40):
        learner.learn_one(torch.randn(learner.F.z_shape, generator=g) + t % 3, t % 3)
    return learner


def test_it_is_verse_lda_without_the_network() -> None:
    F = small_network()
    alone = _taught(SLDAQuarters(F, shrinkage=0.2, temperature=0.5))
    both = _taught(VERSELDA(F, ClassBalanced(9), shrinkage=0.2, temperature=0.5, weight=0.0))
    Z = torch.randn(10, *F.z_shape)
    assert torch.allclose(alone.predict_proba_many(Z), both.predict_proba_many(Z), atol=1e-6)
    assert torch.allclose(alone.network()(Z), alone.logits(alone._stored(Z)), atol=1e-5)


def test_no_sample_is_kept() -> None:
    F = small_network()
    learner = _taught(SLDAQuarters(F, ClassBalanced(9)))
    c = F.z_shape[0]
    assert learner.memory is None
    assert learner.memory_bytes == 4 * (4 * c * c + 3 * 4 * c + 3)
