"""Coming back: the newest sound checkpoint, and the journal from there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from verse.durable.directory import Directory, Start
from verse.durable.replay import Replayed
from verse.types import BadState

ATTEMPTS, PAUSE = 20, 0.02  # of a reader, while a writer replaces checkpoints


@dataclass(frozen=True, slots=True)
class Recovered:
    """From where the journal was replayed, and which samples can be undone.

    ``problem`` is what was wrong with a newer checkpoint, if the journal made up for it.
    """

    start: int
    recent: list[int]
    learned: int
    problem: BadState | None


def recover(
    state: Replayed, directory: Directory, *, window: int, readonly: bool, before: int | None = None
) -> Recovered:
    """Bring a state to the end of the journal from its newest checkpoint (before an entry, if
    given). ``window`` is how many samples can be undone."""
    if readonly:
        for _ in range(ATTEMPTS):
            # a writer may remove a checkpoint between its name and its content
            try:
                with directory.journal.reading():
                    return _rebuilt(state, directory, directory.starts(before)[:1], window)
            except BadState:
                time.sleep(PAUSE)
    with directory.journal.reading():
        return _rebuilt(state, directory, directory.starts(before), window)


def _rebuilt(
    state: Replayed, directory: Directory, starts: Sequence[Start], window: int
) -> Recovered:
    problems: list[BadState] = []
    for start in starts:
        try:
            _load(state, directory, *start)
            break
        except BadState as error:
            problems.append(error)
    else:
        lost = BadState(f"{directory.path} has lost its checkpoints")
        raise problems[0] if problems else lost
    loaded = state.classifier.samples
    for entry in directory.journal.since(start[0]):
        state.replay(entry)
    return Recovered(
        start[0],
        directory.journal.latest_samples(window),
        state.classifier.samples - loaded,
        problems[0] if problems else None,
    )


def _load(state: Replayed, directory: Directory, position: int, file: str | None) -> None:
    if file is None:
        state.begin()
        return
    tensors, spec = directory.load(position, file)
    if spec["G"] != state.classifier.backbone.key:
        raise BadState(f"{file} was taught with another backbone")
    state.become(tensors, spec)
