"""A saved state is checked while it is loaded: it may come from anywhere, and from before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from verse.kernels.class_moments import ClassMoments
from verse.kernels.joint_statistics import JointStatistics
from verse.kernels.moments import Moments
from verse.memory.base import Memory
from verse.network.net import Net
from verse.network.vector import Vector
from verse.types import BadState

if TYPE_CHECKING:
    from verse.learners.base import Learner


_MISFITS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def load_checked(learner: Learner, state: dict[str, Tensor]) -> None:
    """Bring a learner to a saved state, or say that it does not fit."""
    try:
        labels, retired = _unique_labels(state)
        learner.state_parts.load_state(state | {"labels": torch.tensor(labels, dtype=torch.int64)})
        for output in sorted(retired, reverse=True):
            learner.forget(labels[output])
        _require_fit(learner)
    except BadState:
        raise
    except _MISFITS as error:
        # torch may add a trace of its own, line by line
        what = f"{error} is missing" if isinstance(error, KeyError) else f"{error}".split("\n")[0]
        raise BadState(
            f"the saved state does not fit this learner ({what}): it is damaged, or another "
            "version of verse wrote it; teach again, or open it with that version"
        ) from error


def _unique_labels(state: dict[str, Tensor]) -> tuple[list[int], set[int]]:
    """Labels of all outputs, and which of these answer no more.

    Before outputs of forgotten classes were removed they stayed as ``retired``, and their label
    may be that of another output, too. They get one of their own, to be forgotten by.
    """
    labels = [int(label) for label in state["labels"]]
    retired = {int(output) for output in state.get("retired", ())}
    below = min(labels, default=0)
    for output in retired:
        labels[output] = below - 1 - output
    return labels, retired


def _require_fit(learner: Learner) -> None:
    """Everything is finite and made for as many classes as there are labels."""
    n = len(learner.labels)
    for name, tensor in learner.state().items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{name} is not finite")
    for name, part in learner.state_parts.parts.items():
        if isinstance(part, Net):
            fits = part.n == n
        elif isinstance(part, Vector):
            fits = part.layout == learner.theta.layout
        elif isinstance(part, Memory):
            part.set_class_count(n)  # in old files it may have been more
            y = part.fields["y"][: len(part)]
            fits = not len(part) or (int(y.min()) >= 0 and int(y.max()) < n)
        elif isinstance(part, ClassMoments | JointStatistics | Moments):
            fits = len(part.counts) == n
        else:
            continue
        if not fits:
            raise ValueError(f"{name} is not made for {n} classes")
    if n:
        answer = learner.logits(torch.zeros(1, *learner.F.stored_shape, device=learner.device))
        if answer.shape != (1, n):
            raise ValueError(f"it answers with {answer.shape[-1]} scores for {n} classes")
        if not bool(torch.isfinite(answer).all()):
            raise ValueError("its answers are not finite")
