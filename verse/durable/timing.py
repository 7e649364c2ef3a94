"""When a batch is flushed, and when a checkpoint is worth its time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

CHECKPOINT_EVERY = 25  # samples, which opening would have to replay, if it is cheap enough
LONGEST_JOURNAL = 1000  # entries after which a checkpoint is written however long it takes
BATCH_ENTRIES, BATCH_SECONDS = 32, 0.5
RETRY_SECONDS = 10  # after a checkpoint that could not be written


class CheckpointTiming:
    """Counts what a checkpoint would save, and what the latest one cost.

    >>> timing = CheckpointTiming()
    >>> timing.note_samples(CHECKPOINT_EVERY)
    >>> timing.checkpoint_due(position=25)
    True
    >>> with timing.measure_save(position=25):
    ...     pass
    >>> timing.saved, timing.checkpoint_due(position=25)
    (25, False)
    """

    def __init__(self) -> None:
        self.saved = 0  # newest entry contained in a checkpoint
        self._samples = 0  # learned after that
        self._when_due = self._when_overdue = 0.0  # not before these moments
        self._flushed = time.monotonic()

    def note_samples(self, samples: int = 1) -> None:
        self._samples += samples

    def restart(self, position: int) -> None:
        """The state is that of a checkpoint; what is learned after it counts."""
        self.saved, self._samples = position, 0

    def note_flush(self) -> None:
        self._flushed = time.monotonic()

    def flush_due(self, pending: int) -> bool:
        """Is a batch full, or has it waited long enough?"""
        return pending >= BATCH_ENTRIES or time.monotonic() - self._flushed > BATCH_SECONDS

    def checkpoint_due(self, position: int) -> bool:
        """Should a checkpoint be written now?"""
        now = time.monotonic()
        due = self._samples >= CHECKPOINT_EVERY
        overdue = position - self.saved >= LONGEST_JOURNAL
        return (due and now >= self._when_due) or (overdue and now >= self._when_overdue)

    @contextmanager
    def measure_save(self, position: int) -> Iterator[None]:
        """Around the writing of a checkpoint."""
        start = time.monotonic()
        self._when_due = self._when_overdue = start + RETRY_SECONDS  # if it fails
        yield
        self.restart(position)
        # at most a twentieth of the time goes into checkpoints, however large the memory is
        end = time.monotonic()
        self._when_due, self._when_overdue = end + 20 * (end - start), 0.0
