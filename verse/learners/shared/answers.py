"""Logits of a sample, stored in memory with it."""

from __future__ import annotations

from torch import Tensor

from verse.memory.base import Memory
from verse.network.plastic import head_capacity

FIELDS: dict[str, tuple[int, ...]] = {"logits": (head_capacity(0),), "width": ()}
"""A row of logits as wide as the head has room for, and how many outputs there were."""


def answer_fields(memory: Memory, scores: Tensor) -> dict[str, Tensor]:
    """The two fields for scores [n, classes]; the memory's field is widened if the head has grown.

    Call it when the step can no longer fail: widening is not undone.
    """
    n, classes = scores.shape
    columns = head_capacity(classes)
    if columns > memory.fields["logits"].shape[1]:
        memory.widen("logits", columns)
    logits = scores.new_zeros(n, columns)
    logits[:, :classes] = scores
    return {"logits": logits, "width": scores.new_full((n,), float(classes))}


def drop_answers(memory: Memory, output: int) -> None:
    """Remove the logits of an output; later ones move up."""
    logits, width = memory.fields["logits"], memory.fields["width"]
    logits[:, output:-1] = logits[:, output + 1 :].clone()
    logits[:, -1] = 0
    width -= (width > output).to(width.dtype)
