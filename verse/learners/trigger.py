"""When a method that knows tasks may act as if one had ended: one rule for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from verse.learners.setting import about
from verse.learners.traits import Traits
from verse.types import BadSetting

DEFAULT: Final = "every:100"
When = Annotated[
    str,
    about(
        "when a task counts as ended",
        pattern="^(every:0*[1-9][0-9]*|class-change|event)$",
        such_as=(DEFAULT, "class-change", "event"),
    ),
]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A stream has no tasks, so methods made for tasks consolidate when this rule says so:

    - ``every:N``: after every N samples (the default of all methods is ``every:100``);
    - ``class-change``: before a sample whose class differs from the one before it;
    - ``event``: when ``consolidate()`` is called, that is at a test event.

    A rule holds no state. What it counts is the learner's ``clock``, two numbers (samples since
    the last consolidation, the last output) that are saved, resumed and taken back with it.

    >>> rule, clock = Trigger.parse("every:2"), Trigger.clock()
    >>> [rule.due(clock, y=0) for _ in range(5)]
    [False, False, True, False, True]
    """

    kind: str
    every: int = 0

    @classmethod
    def parse(cls, setting: str) -> Trigger:
        """From a setting such as "every:100", "class-change" or "event"."""
        kind, _, number = setting.partition(":")
        if kind == "every" and number.isdecimal() and int(number) >= 1:
            return cls("every", int(number))
        if setting in ("class-change", "event"):
            return cls(setting)
        raise BadSetting(f"trigger {setting!r}: use every:N (N ≥ 1), class-change or event")

    @staticmethod
    def clock() -> list[int]:
        """Nothing learned, no output seen."""
        return [0, -1]

    def due(self, clock: list[int], y: int) -> bool:
        """Whether to consolidate before learning a sample of output ``y``; counts that sample."""
        since, previous = clock
        rule = {"every": since >= self.every, "class-change": y != previous, "event": False}
        due = since > 0 and rule[self.kind]
        clock[:] = [1 if due else since + 1, y]
        return due

    def due_at_event(self, clock: list[int]) -> bool:
        """Whether to consolidate at a test event; a second event without samples is none."""
        due = self.kind == "event" and clock[0] > 0
        if due:
            clock[0] = 0
        return due


def task_based(adaptation: str) -> Traits:
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
