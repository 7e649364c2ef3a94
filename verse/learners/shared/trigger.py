"""When a method that knows tasks may act as if one had ended: one rule for all of them."""

from __future__ import annotations

from typing import Annotated, Final

import torch
from torch import Tensor

from verse.learners.traits import Traits
from verse.settings import about
from verse.stateful import PerClass
from verse.types import BadSetting

DEFAULT: Final = "every:100"
NO_OUTPUT: Final = -1
When = Annotated[
    str,
    about(
        "when a task counts as ended",
        pattern="^(every:0*[1-9][0-9]*|class-change|event)$",
        such_as=(DEFAULT, "class-change", "event"),
    ),
]


class Trigger(PerClass):
    """A stream has no tasks, so methods made for tasks consolidate when this rule says so:

    - ``every:N``: after every N samples (the default of all methods is ``every:100``);
    - ``class-change``: before a sample whose class differs from the one before it;
    - ``event``: when ``consolidate()`` is called, that is at a test event.

    It counts the samples since the last consolidation and knows the last output.

    Parameters
    ----------
    setting
        The rule, as above.

    >>> trigger = Trigger("every:2")
    >>> [trigger.due(y=0) for _ in range(5)]
    [False, False, True, False, True]
    """

    def __init__(self, setting: str) -> None:
        kind, _, number = setting.partition(":")
        if not (kind == "every" and number.isdecimal() and int(number) >= 1) and (
            setting not in ("class-change", "event")
        ):
            raise BadSetting(f"trigger {setting!r}: use every:N (N ≥ 1), class-change or event")
        self.kind, self.every = kind, int(number or 0)
        self.since = 0
        self.previous = NO_OUTPUT

    def due(self, y: int) -> bool:
        """Whether to consolidate before learning a sample of output ``y``; counts that sample."""
        changed = {"every": self.since >= self.every, "class-change": y != self.previous}
        due = self.since > 0 and changed.get(self.kind, False)
        self.since, self.previous = 1 if due else self.since + 1, y
        return due

    def due_at_event(self) -> bool:
        """Whether to consolidate at a test event; a second event without samples is none."""
        due = self.kind == "event" and self.since > 0
        if due:
            self.since = 0
        return due

    def add_class(self, classes: int, row: Tensor) -> None:
        """Nothing: a class is noticed when it is learned."""

    def drop_class(self, output: int, into: int | None, classes: int) -> int:
        if self.previous == output:
            self.previous = NO_OUTPUT if into is None else into
        self.previous -= self.previous > output
        return 0

    def mark(self) -> tuple[int, int]:
        return self.since, self.previous

    def undo(self, mark: tuple[int, int]) -> None:
        self.since, self.previous = mark

    def state(self) -> dict[str, Tensor]:
        return {"": torch.tensor([self.since, self.previous])}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.since, self.previous = (int(v) for v in state[""])

    def follow(self, other: Trigger) -> None:
        self.since, self.previous = other.since, other.previous


def task_traits(adaptation: str) -> Traits:
    """The row that the methods for known tasks share in the table of assumptions."""
    return Traits(
        kind="batch",
        batch_size="≫ 1",
        single_pass=False,
        class_incremental=False,
        subset_replay=None,
        training_time="ζ(n)",
        violates_cisll=True,
        fidelity="adapted",
        adaptation=adaptation,
    )
