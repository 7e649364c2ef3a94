"""The conformance suite: what must hold for any learner and any memory.

Belongs here: checks that every learner or memory must pass. Does not belong here: a test of one
method.

Authors of new ones run it against theirs::

    from verse.checks import check_learner
    check_learner(lambda F, memory, seed: MyLearner(F, memory, seed=seed))

Every check is a function ``check_…(make)`` that raises ``AssertionError``; ``LEARNER_CHECKS`` and
``MEMORY_CHECKS`` list them, so that a test runner can show each by its name.
"""

from __future__ import annotations

from verse.checks.forgetting import (
    check_forget,
    check_forget_again_and_again,
    check_forget_keeps_the_others,
    check_merge,
)
from verse.checks.learner import (
    LEARNER_CHECKS,
    check_capacity_never_exceeded,
    check_clone_independent,
    check_exact_resume,
    check_exported_network,
    check_float16_memory,
    check_inputs_unchanged,
    check_learner,
    check_learns_separable_stream,
    check_linear_network,
    check_new_class_midstream,
    check_one_class_one_sample,
    check_prediction_changes_nothing,
    check_predicts_before_learning,
    check_probabilities,
    check_refuses_nonfinite,
    check_refuses_what_is_far_off,
    check_same_seed_same_weights,
    check_settings_rebuild,
    check_survives_exception,
)
from verse.checks.memory import (
    MEMORY_CHECKS,
    MemoryMaker,
    check_memory,
    check_memory_bounded,
    check_memory_closes_gaps,
    check_memory_discard,
    check_memory_draws,
    check_memory_resume,
)
from verse.checks.worlds import CAPACITY, LearnerMaker, Stream, small_network, small_stream

__all__ = [
    "check_learner",
    "check_memory",
    "LEARNER_CHECKS",
    "MEMORY_CHECKS",
    "check_predicts_before_learning",
    "check_prediction_changes_nothing",
    "check_inputs_unchanged",
    "check_probabilities",
    "check_new_class_midstream",
    "check_same_seed_same_weights",
    "check_clone_independent",
    "check_exact_resume",
    "check_capacity_never_exceeded",
    "check_learns_separable_stream",
    "check_survives_exception",
    "check_refuses_nonfinite",
    "check_one_class_one_sample",
    "check_float16_memory",
    "check_linear_network",
    "check_forget",
    "check_forget_again_and_again",
    "check_forget_keeps_the_others",
    "check_merge",
    "check_refuses_what_is_far_off",
    "check_settings_rebuild",
    "check_exported_network",
    "check_memory_bounded",
    "check_memory_draws",
    "check_memory_resume",
    "check_memory_discard",
    "check_memory_closes_gaps",
    "small_network",
    "small_stream",
    "CAPACITY",
    "LearnerMaker",
    "MemoryMaker",
    "Stream",
]
