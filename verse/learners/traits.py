"""What a method assumes, as in the paper's table of assumptions, and how faithful ours is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Traits:
    """The columns of the table of assumptions for one method *as its authors publish it*.

    ``violates_cisll`` is the paper's own verdict: does the method break the rules of
    class-incremental streaming lifelong learning? It is given, not computed from the other columns.

    Parameters
    ----------
    kind
        "batch", "online" or "streaming".
    batch_size
        "1" or "≫ 1".
    fine_tuning
        Does it need fine-tuning?
    single_pass
        Does it see each sample once?
    class_incremental
        Does it do without task labels?
    subset_replay
        Does it replay a part of its memory? None: it replays nothing.
    training_time, inference_time
        Per sample.
    buffer
        Size of its memory.
    violates_cisll
        The paper's verdict: does it break the rules of such learning?
    fidelity
        "faithful" or "adapted".
    adaptation
        What differs from the authors' form, and why.

    >>> Traits(kind="streaming", buffer="≤ 5 %").violates_cisll
    False
    """

    kind: str  # "batch", "online" or "streaming"
    batch_size: str = "1"  # "1" or "≫ 1"
    fine_tuning: bool = False
    single_pass: bool = True
    class_incremental: bool = True
    subset_replay: bool | None = True  # None: replays nothing
    training_time: str = "ζ(1)"
    inference_time: str = "ζ(1)"
    buffer: str = "n/a"
    violates_cisll: bool = False
    fidelity: str = "faithful"  # or "adapted"
    adaptation: str = ""  # what differs from the authors' form, and why

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
