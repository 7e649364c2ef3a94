"""First the journal, then the classifier: a crash between the two loses nothing."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from verse.durable.directory import WIPE_SECONDS, Directory
from verse.durable.errors import JournalFull, Repaired, TooLate
from verse.durable.keys import IdempotencyKey
from verse.durable.lesson import Lesson, Outcome
from verse.durable.recovery import load_first, recover, replay
from verse.durable.snapshots import Snapshot, Snapshots
from verse.durable.state import State
from verse.durable.timing import CheckpointTiming
from verse.kernels.interrupts import defer_interrupt
from verse.types import BadSetting, BadState, Label, Refused

UNDO_WINDOW = 100  # samples that can be taken back
HOLD = 20  # samples of a usual hold, which is undone quickly also after opening


class WriteAhead:
    """Every change of a state goes through here: written down, flushed, done.

    With ``batches`` samples are learned first and flushed a few at a time.
    """

    def __init__(
        self, state: State, directory: Directory, *, batches: bool, readonly: bool
    ) -> None:
        self.state, self.directory, self.journal = state, directory, directory.journal
        self.batches, self.readonly = batches, readonly
        self.timing = CheckpointTiming()
        self.recent: deque[int] = deque(maxlen=UNDO_WINDOW)  # samples that can be undone
        self.snapshots = Snapshots()
        self._broken = ""

    def must_be_writable(self) -> None:
        if self.readonly:
            raise BadSetting("opened with readonly=True: it answers, but does not learn")
        if self.directory.closed:
            raise BadState(f"{self.directory.path} is closed: open it again with verse.open")
        if self._broken:
            raise BadState(f"{self._broken}: open the directory again")

    # ---- samples ----------------------------------------------------------------------------

    def learn(self, lessons: Sequence[Lesson], *, ask: bool) -> list[Outcome]:
        """Learn several samples in this order with one disk flush for all of them."""
        self.must_be_writable()
        features = [self._own(lesson.z) for lesson in lessons]
        with defer_interrupt():
            written = [self._write(n, z) for n, z in zip(lessons, features, strict=True)]
            if not self.batches:
                self._flush_or_discard()
            outcomes: list[Outcome] = []
            errors: dict[int, Exception | None] = {}  # of this group
            for lesson, z, (seq, known) in zip(lessons, features, written, strict=True):
                if known is None:
                    outcome = self._learn_entry(z, lesson.label, seq, ask)
                    errors[seq] = outcome.error
                else:
                    outcome = replace(known, error=known.error or errors.get(seq))
                outcomes.append(outcome)
            self.after_group()
            return outcomes

    def key(self, key: str | None) -> IdempotencyKey | None:
        """What is known of an idempotency key."""
        return self.journal.key(key) if key is not None else None

    def _write(self, lesson: Lesson, z: Tensor) -> tuple[int, Outcome | None]:
        """(its number, what became of it when its key came first)."""
        raw = z.numpy().tobytes()
        content = lesson.digest(raw)
        known = self.key(lesson.key)
        if known is not None:
            return known.seq, Outcome(known.seq, repeated=True, error=known.problem(content))
        arguments = {"label": lesson.label}
        extras: dict[str, Any] = {"key": lesson.key, "content": content, "images": lesson.images}
        return self.journal.add("learn", arguments, raw, **extras), None

    def _learn_entry(self, z: Tensor, label: Label, seq: int, ask: bool) -> Outcome:
        guess, error = None, None
        try:
            self._offer()
            guess = self.state.classifier.predict_feature(z) if ask else None
            self.state.learn(z, label, seq=seq)
            self.timing.note_samples()
            self.recent.append(seq)
        except Exception as raised:
            error = raised
            self.refuse(seq, raised)
        self.state.position = seq
        return Outcome(seq, guess=guess, error=error)

    def _offer(self) -> None:
        if not self.readonly:
            self.snapshots.offer(self.state)

    def _own(self, z: Tensor) -> Tensor:
        """The feature as the journal keeps it; what could never be learned stops here."""
        shape = self.state.classifier.backbone.F.z_shape
        z = z.detach().to("cpu", torch.float32).contiguous()
        if tuple(z.shape) != shape:
            raise Refused(f"a feature has shape {shape}, not {tuple(z.shape)}")
        if not bool(torch.isfinite(z).all()):
            raise Refused("the feature is not finite; nothing was learned")
        return z

    def refuse(self, seq: int, reason: Exception) -> None:
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
        with defer_interrupt():
            seq = self.journal.add(kind, arguments)
            if relabel is not None:
                self.journal.relabel(*relabel)
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

    def undo(self, seqs: Sequence[int]) -> list[Label]:
        """Undo some of the latest samples, all or none. Returns their labels."""
        self.must_be_writable()
        self.flush()
        late = sorted(set(seqs) - set(self.recent))
        if late or not seqs:
            which = f"sample {late[0]} cannot" if late else "nothing can"
            raise TooLate(
                f"{which} be undone: it is not among the last {UNDO_WINDOW}, was undone already, "
                "or a class was forgotten since"
            )
        labels: list[Label] = [self.journal.entry(seq).arguments["label"] for seq in seqs]
        with defer_interrupt():
            before = Snapshot.of(self.state)
            try:
                self._replay_without(set(seqs))
                self.journal.undo(sorted(seqs))
            except BaseException as error:
                self._go_back(before, error)
                raise
            self.look_up()
        return labels

    def _replay_without(self, seqs: Set[int]) -> None:
        """The state as if these samples had never come."""
        snapshot, starts = self.snapshots.before(min(seqs)), self.directory.starts(min(seqs))
        with self.journal.read_transaction():
            if snapshot is not None and (not starts or snapshot.position >= starts[0][0]):
                snapshot.put_back(self.state)
                start = snapshot.position
            else:
                start, _ = load_first(self.state, self.directory, starts)
            self.snapshots.drop_from(min(seqs))
            replay(self.state, self.journal, start, self._offer, without=seqs)

    def _go_back(self, before: Snapshot, reason: BaseException) -> None:
        """A change failed and nothing was written: the state is to be that of before."""
        self.snapshots.clear()
        try:
            before.put_back(self.state)
        except BaseException as error:
            self._broken = f"a change failed ({reason}), and so did going back ({error})"

    def become(self, other: State, since: int) -> None:
        """The journal was changed from an entry on: take over the state that it describes now."""
        self.snapshots.drop_from(since)
        try:
            self.state.restore(other.classifier.state(), other.spec())
        except BaseException as error:
            self._broken = f"a change is written, but not done ({error})"
            raise
        self.look_up()

    def look_up(self) -> None:
        """What the journal says of the newest checkpoint, and which samples can be undone."""
        self.state.position = self.journal.last
        checkpoints = self.journal.checkpoints()
        saved = checkpoints[0][0] if checkpoints else 0
        self.timing.restart(saved)
        self.timing.note_samples(self.journal.samples_after(saved))
        self.recent = deque(self.journal.latest_samples(UNDO_WINDOW), UNDO_WINDOW)

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
        self.timing.note_flush()

    def _flush_or_discard(self) -> None:
        try:
            self.journal.flush()
        except BaseException:
            self.journal.discard()
            raise

    def after_group(self) -> None:
        """Flush a due batch; write a due checkpoint; wipe what a reader hindered before."""
        if self.directory.unwiped:
            with suppress(JournalFull):
                self.directory.wipe()
        if self.batches and self.timing.flush_due(self.journal.pending):
            self.flush()
        if self.timing.checkpoint_due(self.state.position):
            with suppress(JournalFull):  # the journal holds everything: try again later
                self.save(window=UNDO_WINDOW)

    def save(self, *, window: int, meta: Mapping[str, Any] | None = None) -> None:
        """A checkpoint, after which the latest ``window`` samples can still be undone."""
        state = self.state
        with self.timing.measure_save(state.position):
            tensors = state.classifier.state()
            self.directory.save(state.position, tensors, state.spec(), window=window, meta=meta)
        if not window:
            self.recent.clear()
            self.snapshots.clear()
            self.directory.wipe(WIPE_SECONDS)

    def recover(self) -> None:
        """Bring the state to the end of the journal from a checkpoint."""
        self.snapshots.clear()
        found = recover(
            self.state,
            self.directory,
            window=UNDO_WINDOW,
            readonly=self.readonly,
            offer=self._offer,
        )
        self.timing.restart(found.start)
        self.timing.note_samples(found.learned)
        self.recent = deque(found.recent, UNDO_WINDOW)
        if found.refused and not self.readonly:  # killed before that was written down
            for seq in found.refused:
                self.journal.refuse(seq)
            self._flush_or_discard()
        if found.problem is not None:
            told = f"{found.problem}; repaired from the journal"
            warnings.warn(told, Repaired, stacklevel=5)
            self.timing.restart(-1)  # closing writes a sound one

    def finish_forgetting(self) -> None:
        """Wipe the files, if they still hold something that was forgotten."""
        if self.journal.contains("forget"):
            self.save(window=0)
        elif self.journal.wipe_due:
            self.directory.wipe()

    def close(self) -> None:
        """Flush, and write a checkpoint of what no checkpoint holds."""
        if self.readonly or self._broken or self.directory.closed:
            return
        self.flush()
        with suppress(JournalFull):
            hold = self._snapshot_before_last_hold()
            if hold is not None:  # an older checkpoint: the newest one has to follow it
                self.directory.save(hold.position, hold.tensors, hold.spec, window=UNDO_WINDOW)
            if hold is not None or self.state.position > self.timing.saved:
                self.save(window=UNDO_WINDOW)
            self.finish_forgetting()

    def _snapshot_before_last_hold(self) -> Snapshot | None:
        """A state from which the last hold is undone quickly when the directory is opened again
        (the states in memory are gone then); None if a checkpoint is as near, or nothing is."""
        recent = list(self.recent)[-HOLD:]
        snapshot = self.snapshots.before(recent[0]) if len(recent) == HOLD else None
        if snapshot is None or not snapshot.position:
            return None
        starts = self.directory.starts(recent[0])
        return snapshot if not starts or snapshot.position > starts[0][0] else None
