"""What a durable classifier can refuse or warn of."""

from __future__ import annotations

from verse.types import BadLabel, BadSetting, BadState, VerseError


class JournalFull(VerseError):
    """The disk is full or failing: nothing was learned, everything before is safe."""


class JournalLost(VerseError):
    """There are checkpoints that the journal does not know: ``verse salvage`` recovers them."""


class NotWiped(JournalFull):
    """Something is forgotten, but the files still hold it; the next opening wipes them."""


class Locked(VerseError):
    """Another process has the directory open for writing."""


class TooLate(BadSetting):
    """The sample is not among the latest ones, so it cannot be undone."""


class KeyUsed(BadSetting):
    """An idempotency key stands for another sample, or for one that was undone."""


class Taken(BadLabel):
    """There is a class of that label already."""


class Repaired(UserWarning):
    """A damaged checkpoint was found and replaced by replaying the journal from an older one."""


def damage_error(what: str) -> BadState:
    """The error for a journal whose content cannot be trusted."""
    return BadState(f"the journal is damaged ({what}): restore a backup")
