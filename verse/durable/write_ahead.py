"""First the journal, then the classifier: a crash between the two loses nothing."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from verse.classifier import check_label
from verse.durable.directory import Directory
from verse.durable.errors import JournalFull, Repaired, TooLate
from verse.durable.lesson import Lesson, Outcome
from verse.durable.pace import Pace
from verse.durable.recovery import recover
from verse.durable.replay import Replayed
from verse.kernels.interrupts import deferred_interrupt
from verse.types import BadSetting, BadState, Label, Refused

UNDO_WINDOW = 100  # samples that can be taken back


class WriteAhead:
    """Every change of a state goes through here: written down, flushed, done.

    With ``batches`` samples are learned first and flushed a few at a time.
    """

    def __init__(
        self, state: Replayed, directory: Directory, *, batches: bool, readonly: bool
    ) -> None:
        self.state, self.directory, self.journal = state, directory, directory.journal
        self.batches, self.readonly = batches, readonly
        self.pace = Pace()
        self.recent: deque[int] = deque(maxlen=UNDO_WINDOW)  # samples that can be undone
        self._broken = ""

    def must_be_writable(self) -> None:
        if self.readonly:
            raise BadSetting("opened with readonly=True: it answers, but does not learn")
        if self._broken:
            raise BadState(f"{self._broken}: open the directory again")

    # ---- samples ----------------------------------------------------------------------------

    def learn(self, lessons: Sequence[Lesson], *, ask: bool) -> list[Outcome]:
        """Learn several samples in this order with one disk flush for all of them."""
        self.must_be_writable()
        lessons = [Lesson(self._own(n.z), check_label(n.label), n.key, n.images) for n in lessons]
        with deferred_interrupt():
            written = [self._write(lesson) for lesson in lessons]
            if not self.batches:
                self._flush_or_discard()
            outcomes = [
                self._learn_written(lesson, seq, ask) if new else Outcome(seq, repeated=True)
                for lesson, (seq, new) in zip(lessons, written, strict=True)
            ]
            self.after_group()
            return outcomes

    def seq_of(self, key: str | None) -> int | None:
        """The sequence number a key was learned under, or None."""
        return self.journal.seq_of(key) if key is not None else None

    def _write(self, lesson: Lesson) -> tuple[int, bool]:
        """(its number, is it new)."""
        known = self.seq_of(lesson.key)
        if known is not None:
            return known, False
        arguments, raw = {"label": lesson.label}, lesson.z.numpy().tobytes()
        return self.journal.add("learn", arguments, raw, key=lesson.key, images=lesson.images), True

    def _learn_written(self, lesson: Lesson, seq: int, ask: bool) -> Outcome:
        guess, error = None, None
        try:
            guess = self.state.classifier.predict_feature(lesson.z) if ask else None
            self.state.learn(lesson.z, lesson.label)
            self.pace.learned()
            self.recent.append(seq)
        except Exception as raised:
            error = raised
            self._refuse(seq, raised)
        self.state.position = seq
        return Outcome(seq, guess=guess, error=error)

    def _own(self, z: Tensor) -> Tensor:
        """The feature as the journal keeps it; what could never be learned stops here."""
        shape = self.state.classifier.backbone.F.z_shape
        z = z.detach().to("cpu", torch.float32).contiguous()
        if tuple(z.shape) != shape:
            raise Refused(f"a feature has shape {shape}, not {tuple(z.shape)}")
        if not bool(torch.isfinite(z).all()):
            raise Refused("the feature is not finite; nothing was learned")
        return z

    def _refuse(self, seq: int, reason: Exception) -> None:
        self.journal.refuse(seq)
        if self.batches:
            return
        try:
            self._flush_or_discard()
        except JournalFull:
            # Refused is refused again on replay; anything else might then be learned
            if not isinstance(reason, Refused):
                self._broken = f"sample {seq} failed ({reason}) and the disk is full"

    # ---- other changes ----------------------------------------------------------------------

    def change(
        self,
        kind: str,
        arguments: dict[str, Any],
        relabel: tuple[Label, Label | None] | None = None,
    ) -> Any:
        """Write down something that is not a sample, then do it."""
        self.must_be_writable()
        self.flush()
        with deferred_interrupt():
            seq = self.journal.add(kind, arguments)
            if relabel is not None:
                self.journal.relabel_images(*relabel)
            self._flush_or_discard()
            try:
                result = self.state.apply(kind, arguments)
            except BaseException:  # perhaps half done
                self.journal.refuse(seq)
                self._flush_or_discard()
                self.recover()
                raise
            self.state.position = seq
            return result

    def undo(self, seq: int | None) -> Label:
        """Take back one of the latest samples (None: the last)."""
        self.must_be_writable()
        self.flush()
        if seq is None and self.recent:
            seq = self.recent[-1]
        if seq is None or seq not in self.recent:
            raise TooLate(
                f"sample {seq} cannot be undone: it is not among the last {UNDO_WINDOW}, was "
                "undone already, or a class was forgotten since"
            )
        label: Label = self.journal.entry(seq).arguments["label"]
        with deferred_interrupt():
            self.journal.undo(seq)
            self.recover(seq)
        return label

    # ---- safety -----------------------------------------------------------------------------

    def flush(self) -> None:
        """Make everything learned so far durable; if the disk is full, it stays pending."""
        try:
            self.journal.flush()
        except JournalFull as error:
            raise JournalFull(
                f"{error.__cause__}: the latest samples are learned, but not yet safe; free some "
                "disk space and flush again"
            ) from error
        self.pace.flushed()

    def _flush_or_discard(self) -> None:
        try:
            self.journal.flush()
        except BaseException:
            self.journal.discard()
            raise

    def after_group(self) -> None:
        """Flush a due batch; write a due checkpoint."""
        if self.batches and self.pace.flush_due(self.journal.pending):
            self.flush()
        if self.pace.checkpoint_due(self.state.position):
            with suppress(JournalFull):  # the journal holds everything: try again later
                self.save(window=UNDO_WINDOW)

    def save(self, *, window: int, meta: Mapping[str, Any] | None = None) -> None:
        """A checkpoint, after which the latest ``window`` samples can still be undone."""
        state = self.state
        with self.pace.saving(state.position):
            tensors = state.classifier.learner.state()
            self.directory.save(state.position, tensors, state.spec(), window=window, meta=meta)
        if not window:
            self.recent.clear()

    def recover(self, before: int | None = None) -> None:
        """Bring the state to the end of the journal from a checkpoint (before an entry)."""
        found = recover(
            self.state, self.directory, window=UNDO_WINDOW, readonly=self.readonly, before=before
        )
        self.pace.loaded(found.start)
        self.pace.learned(found.learned)
        self.recent = deque(found.recent, UNDO_WINDOW)
        if found.problem is not None:
            told = f"{found.problem}; repaired from the journal"
            warnings.warn(told, Repaired, stacklevel=5)
            self.pace.loaded(-1)  # closing writes a sound one

    def close(self) -> None:
        """Flush, and write a checkpoint of what no checkpoint holds."""
        if self.readonly or self._broken:
            return
        self.flush()
        if self.state.position > self.pace.saved:
            with suppress(JournalFull):
                self.save(window=UNDO_WINDOW)
