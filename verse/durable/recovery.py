"""Coming back: the newest sound checkpoint, and the journal from there."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from verse.durable.directory import Directory, Start
from verse.durable.journal import Journal
from verse.durable.state import State
from verse.types import BadState

ATTEMPTS, PAUSE = 20, 0.02  # of a reader, while a writer replaces checkpoints


@dataclass(frozen=True, slots=True)
class Recovery:
    """From where the journal was replayed, and which samples can be undone.

    ``refused`` are samples that were refused again; ``problem`` is what was wrong with a newer
    checkpoint, if the journal made up for it.
    """

    start: int
    recent: list[int]
    learned: int
    refused: list[int]
    problem: BadState | None


def recover(
    state: State, directory: Directory, *, window: int, readonly: bool, offer: Callable[[], None]
) -> Recovery:
    """Bring a state to the end of the journal from its newest checkpoint. ``window`` is how many
    samples can be undone; ``offer`` is called between two entries."""
    if readonly:
        for _ in range(ATTEMPTS):
            # a writer may remove a checkpoint between its name and its content
            try:
                with directory.journal.read_transaction():
                    return _rebuild(state, directory, directory.starts()[:1], window, offer)
            except BadState:
                time.sleep(PAUSE)
    with directory.journal.read_transaction():
        return _rebuild(state, directory, directory.starts(), window, offer)


def _rebuild(
    state: State,
    directory: Directory,
    starts: Sequence[Start],
    window: int,
    offer: Callable[[], None],
) -> Recovery:
    start, problem = load_first(state, directory, starts)
    loaded = state.classifier.samples
    refused = replay(state, directory.journal, start, offer)
    recent = [seq for seq in directory.journal.latest_samples(window) if seq not in refused]
    return Recovery(start, recent, state.classifier.samples - loaded, refused, problem)


def replay(
    state: State,
    journal: Journal,
    start: int,
    offer: Callable[[], None],
    without: Set[int] = frozenset(),
) -> list[int]:
    """Every entry after a position, some excepted; which samples were refused again."""
    refused = []
    for entry in journal.since(start):
        if entry.seq not in without:
            offer()
            if not state.replay(entry):
                refused.append(entry.seq)
    return refused


def load_first(
    state: State, directory: Directory, starts: Sequence[Start]
) -> tuple[int, BadState | None]:
    """Become the first of these checkpoints that is sound; its position, and what was wrong with
    the one before it."""
    problems: list[BadState] = []
    for position, file in starts:
        try:
            _load(state, directory, position, file)
            return position, problems[0] if problems else None
        except BadState as error:
            problems.append(error)
    lost = BadState(f"{directory.path} has lost its checkpoints")
    raise problems[0] if problems else lost


def _load(state: State, directory: Directory, position: int, file: str | None) -> None:
    if file is None:
        state.reset()
        return
    tensors, spec = directory.load(position, file)
    if spec.get("G") != state.classifier.backbone.key:
        raise BadState(f"{file} was taught with another backbone")
    state.restore(tensors, spec)
