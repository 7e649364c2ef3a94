"""Exact forgetting: the classifier that never saw some samples, and no file that still holds them.

It goes back to the last state before the first of them and replays the journal without them. That
is done beside the classifier, which answers meanwhile; the journal then strikes them out by one
write. Killed before that write nothing has happened, killed after it the next opening finishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from verse.durable import write_ahead
from verse.durable.directory import WIPE_SECONDS, Directory
from verse.durable.errors import JournalFull, NotWiped, TooLate
from verse.durable.recovery import load_first
from verse.durable.state import State
from verse.durable.write_ahead import WriteAhead
from verse.kernels.interrupts import defer_interrupt
from verse.types import Label

Progress = Callable[[int, int], None]
"""Called with how many entries are done, and of how many."""

BEFORE = 0  # stands for samples that the journal does not hold any more


def samples_of(directory: Directory, label: Label) -> list[int]:
    """The numbers of all samples of a class, whatever it was called when they came."""
    start, file = directory.starts()[-1]
    of: dict[Label, set[int]] = {}
    if file is not None:
        of = {name: {BEFORE} for name, _ in directory.load(start, file)[1]["taught"]}
    for entry in directory.journal.since(start):
        if entry.fate != "kept" or "label" not in entry.arguments:
            continue
        name = entry.arguments["label"]
        if entry.kind == "learn":
            of.setdefault(name, set()).add(entry.seq)
        elif name in of:
            samples = of.pop(name)
            if entry.kind != "forget":
                of.setdefault(entry.arguments["new"], set()).update(samples)
    return sorted(of.get(label, {BEFORE}))


def check_reach(directory: Directory, seqs: Iterable[int]) -> None:
    """Is each of them a sample that the journal still holds?"""
    kept = set(directory.journal.latest_samples(-1))
    for seq in seqs:
        if seq == BEFORE or seq not in kept:
            if seq != BEFORE and not 0 < seq <= directory.journal.last:
                raise TooLate(f"there is no sample {seq}")
            which = "some samples of the class are" if seq == BEFORE else f"sample {seq} is"
            raise TooLate(
                f"{which} not among those whose features are kept, so they cannot be forgotten "
                "exactly: keep='features' (--keep features) of a new classifier keeps them, as "
                "many as keep_bytes allows. To retire a class as it is: forget(label), or verse "
                "forget --retire"
            )


def forget_exactly(writer: WriteAhead, seqs: list[int], progress: Progress | None) -> None:
    """Become the classifier that never saw these samples, for good."""
    writer.must_be_writable()
    writer.flush()
    check_reach(writer.directory, seqs)
    if not seqs:
        return
    without, void, refused = _replay(writer, set(seqs), progress)
    with defer_interrupt():
        writer.journal.forget(sorted(seqs), void, refused)
        writer.become(without, min(seqs))
        try:
            writer.save(window=write_ahead.UNDO_WINDOW)
            writer.directory.wipe(WIPE_SECONDS)
        except JournalFull as error:
            raise NotWiped(
                f"it is forgotten, but not yet wiped from the files ({error}); opening the "
                "directory again does it"
            ) from error


def _replay(
    writer: WriteAhead, seqs: Set[int], progress: Progress | None
) -> tuple[State, list[int], list[int]]:
    """(the state without the samples, entries that mean nothing without them, samples that the
    learner refuses without them)."""
    journal, state = writer.journal, State(writer.state.classifier.twin())
    start, _ = load_first(state, writer.directory, writer.directory.starts(min(seqs)))
    void: list[int] = []
    refused: list[int] = []
    for entry in journal.since(start):
        if progress is not None:
            progress(entry.seq - start, journal.last - start)
        if entry.seq in seqs:
            continue
        label = entry.arguments.get("label")
        known = label is None or label in state.classifier.labels
        if entry.fate == "kept" and entry.kind != "learn" and not known:
            void.append(entry.seq)  # its class never came
        elif not state.replay(entry):
            refused.append(entry.seq)
    return state, void, refused
