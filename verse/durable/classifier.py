"""DurableClassifier: a StreamClassifier in a directory."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, Unpack

import PIL.Image
from torch import Tensor

from verse import images
from verse.ahead import pair_up
from verse.backbones import Backbone
from verse.configuration import Configuration, Options
from verse.doctor import Report
from verse.durable import forgetting, opening
from verse.durable.directory import Directory
from verse.durable.errors import JournalFull, NotWiped, Taken
from verse.durable.forgetting import Progress
from verse.durable.lesson import Lesson, Outcome
from verse.durable.opening import Record, Request
from verse.durable.state import State
from verse.durable.view import ClassifierView
from verse.durable.write_ahead import WriteAhead
from verse.kernels.interrupts import defer_interrupt
from verse.labels import check_label
from verse.types import BadSetting, Image, Label, Refused


class DurableClassifier(ClassifierView):
    """A ``StreamClassifier`` in a directory: when ``learn_one`` returns, the sample is safe.

    The directory holds a journal (the exact feature and label of every recent sample, flushed to
    disk before it is learned) and checkpoints. Opening loads the newest checkpoint and replays the
    journal: weights and memory are bit-identical to those of a run that was never interrupted.

    Parameters
    ----------
    path
        The directory; it is made if it is new.
    configuration
        What a new classifier is made of; None: the defaults. An existing directory remembers it,
        and asking for something different is an error.
    durable
        "each" flushes every sample before it is learned. "batch" learns first and flushes with
        every 32nd sample, or with the first that comes half a second after the last flush: a
        crash may lose those since then (never a part of one). ``flush()`` writes immediately.
    keep_images
        Keep every taught image, so that another backbone can take over. Grows without bound.
    keep
        "features" keeps the features of older samples, too (5 kB each with the default backbone),
        so that ``forget_exactly`` reaches them; "none" only those that can be undone. None: as
        the directory has it; a new one keeps none.
    keep_bytes
        Largest size of the stored features; the oldest are deleted. None: as stored in the
        directory, and 1 GB if it is new. Up to 11 checkpoints are kept with them.
    readonly
        Read and predict only. There can be any number of readers and one writer.
    reread
        Teach everything anew from the kept images if the backbone is another one.
    backbone
        The name of a backbone, or a ``Backbone`` that is built already.
    options
        Any field of ``Configuration`` by its name; those left out are as the directory has them.

    One thread at a time.

    >>> import tempfile, torch
    >>> from verse import backbones
    >>> folder = tempfile.mkdtemp()
    >>> classifier = DurableClassifier(folder, backbone=backbones.identity((3,)))
    >>> [classifier.learn_one(torch.eye(3)[i], "rgb"[i]) for i in (0, 1, 1)]
    [1, 2, 3]
    >>> classifier.undo()
    'g'
    >>> classifier.samples, classifier.undoable
    (2, [1, 2])
    >>> classifier.close()
    """

    def __init__(
        self,
        path: str | Path,
        configuration: Configuration | None = None,
        *,
        durable: str = "each",
        keep_images: bool = False,
        keep: str | None = None,
        keep_bytes: int | None = None,
        readonly: bool = False,
        reread: bool = False,
        backbone: str | Backbone | None = None,
        **options: Unpack[Options],
    ) -> None:
        if durable not in ("each", "batch"):
            raise BadSetting(f"durable {durable!r}: use 'each' or 'batch'")
        self.path, self.durable, self.readonly = Path(path), durable, readonly
        request = Request(
            self.path,
            configuration,
            backbone,
            options,
            keep_images,
            readonly,
            reread,
            keep,
            keep_bytes,
        )
        self.directory = Directory(self.path, readonly=readonly)
        self.journal = self.directory.journal
        try:
            classifier, record = opening.build_classifier(request, self.journal)
            super().__init__(classifier)
            self.keep_images, self.keep = record.keep_images, record.keep
            if record.keep == "features":
                self.directory.keep = record.keep_bytes // (
                    4 * math.prod(classifier.backbone.F.z_shape)
                )
            self._state = State(classifier)
            self.write_ahead = WriteAhead(
                self._state, self.directory, batches=durable == "batch", readonly=readonly
            )
            self._catch_up(record)
        except BaseException:
            self.directory.close()
            raise

    def _catch_up(self, record: Record) -> None:
        """Learn what the directory holds."""
        self._version = self.journal.database.version()
        if not self.readonly:
            opening.note_record(self.journal, record)
            opening.note_circumstances(self.journal, stacklevel=5)
        if record.key != self.backbone.key:
            self._reread(record)
        else:
            self.write_ahead.recover()
        if not self.readonly:
            self.directory.remove_old_files()
            with suppress(NotWiped):  # killed before it was done, or a reader hindered
                self.write_ahead.finish_forgetting()
            self.write_ahead.after_group()  # killed again, it need not replay all this again

    def _reread(self, record: Record) -> None:
        """Teach everything anew from the kept images with the present backbone, all or nothing."""
        self._state.reset()
        for seq, label, image in self.journal.images("image"):
            with suppress(Refused):
                self._state.learn(self.features([image])[0], label, seq=seq)
        self._state.position = self.journal.last
        moved = Record.of(self._classifier, keep_images=True)
        record = replace(moved, keep=record.keep, keep_bytes=record.keep_bytes)
        self.write_ahead.save(window=0, meta={"options": record.document()})

    # ---- teaching ---------------------------------------------------------------------------

    def learn_one(self, image: Image, label: Label, *, key: str | None = None) -> int:
        """Learn one image; on return it is safe (see ``durable``). Returns its sequence number.

        With an idempotency ``key``, a repeated call is recognised and learned only once. The key
        of another sample, or of one that was undone or forgotten since, is an error.
        """
        kept = {"image": _png(image)} if self.keep_images else None
        return self._outcome(Lesson(self.features([image])[0], label, key, kept))

    def learn_many(
        self, images: Iterable[Image], labels: Iterable[Label], *, overlap: bool = False
    ) -> int:
        """Learn images in this order, each once; returns how many. As ``StreamClassifier`` does."""
        if self.keep_images:
            return sum(self.learn_one(*pair) > 0 for pair in pair_up(images, labels))
        pairs = self._classifier.prepare(images, labels, overlap=overlap)
        return sum(self._outcome(Lesson(z, label)) > 0 for z, label in pairs)

    def learn_feature(self, z: Tensor, label: Label, *, key: str | None = None) -> int:
        """Learn from a feature that ``features`` made; returns its sequence number."""
        if self.keep_images:
            raise BadSetting("this directory keeps images: teach it images, not features")
        return self._outcome(Lesson(z, label, key))

    def _outcome(self, lesson: Lesson) -> int:
        (outcome,) = self.learn_lessons([lesson])
        if outcome.error is not None:
            raise outcome.error
        return outcome.seq

    def learn_lessons(self, lessons: Sequence[Lesson], *, ask: bool = False) -> list[Outcome]:
        """Learn several samples in this order with one disk flush for all of them.

        A refused one carries its error and leaves the others alone; ``JournalFull`` means that
        none was learned. ``ask`` adds what the classifier would have answered before each.
        """
        return self.write_ahead.learn(lessons, ask=ask)

    def seq_of(self, key: str | None) -> int | None:
        """The sequence number a key was learned under, or None."""
        known = self.write_ahead.key(key)
        return None if known is None else known.seq

    def fate_of(self, key: str | None) -> str | None:
        """What became of the sample of a key: "kept", "refused", "undone" or "forgotten"; None if
        there is none."""
        known = self.write_ahead.key(key)
        return None if known is None else known.fate

    def flush(self) -> None:
        """Make everything learned so far durable (only "batch" ever has something pending).

        If the disk is full, it stays pending: free some space and flush again.
        """
        self.write_ahead.flush()

    # ---- changing one's mind ----------------------------------------------------------------

    def undo(self, seq: int | None = None) -> Label:
        """Undo one of the latest samples (default: the last), as if it had never been learned."""
        return self.undo_many([seq] if seq is not None else self.undoable[-1:])[0]

    def undo_many(self, seqs: Sequence[int]) -> list[Label]:
        """Undo several of the latest samples, all or none. Returns their labels."""
        return self.write_ahead.undo(list(dict.fromkeys(seqs)))

    def forget(self, label: Label) -> int:
        """Retire a class for good: its samples leave memory, journal and old checkpoints.

        Weights shared with other classes are not unlearned (``forget_exactly`` does that). Samples
        before this moment can no longer be undone. An error after the class is retired means that
        the files are not wiped yet; that is made up for as soon as possible, at the latest by
        opening the directory again.
        """
        self._classifier.labels.number(label)  # refuses an unknown one
        removed: int = self.write_ahead.change("forget", {"label": label}, (label, None))
        try:
            with defer_interrupt():
                self.write_ahead.save(window=0)
        except JournalFull as error:
            raise NotWiped(
                f"{label!r} is forgotten, but not yet wiped from the files ({error}); opening the "
                "directory again does it"
            ) from error
        return removed

    def forget_exactly(
        self,
        *,
        label: Label | None = None,
        seqs: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Become, bit for bit, the classifier that never saw a class or some samples; returns how
        many samples that were. No file of the directory holds anything of them afterwards.

        It replays what came after the first of them, as far as features were kept (see ``keep``).
        ``progress(done, total)`` hears of every entry; raising there calls it off.
        """
        if (label is None) == (seqs is None):
            raise BadSetting("say what to forget: a label, or sequence numbers")
        if label is not None:
            self._classifier.labels.number(label)  # refuses an unknown one
            self.flush()
            seqs = forgetting.samples_of(self.directory, label)
        found = list(dict.fromkeys(seqs or ()))
        forgetting.forget_exactly(self.write_ahead, found, progress)
        return len(found)

    def rename(self, label: Label, new: Label) -> None:
        """Give a class another label."""
        self._classifier.labels.number(label)
        if check_label(new) in self._classifier.labels:
            raise Taken(f"there is a class {new!r} already: merge them instead")
        self.write_ahead.change("rename", {"label": label, "new": new}, (label, new))

    def merge(self, label: Label, into: Label) -> int:
        """Two labels are one class: what is remembered of ``label`` becomes ``into``."""
        self._classifier.labels.number(label)
        self._classifier.labels.number(into)
        if label == into:
            raise BadSetting("a class cannot be merged into itself")
        moved: int = self.write_ahead.change("merge", {"label": label, "new": into}, (label, into))
        return moved

    def consolidate(self) -> None:
        """Deferred learning of the methods that have it."""
        self.write_ahead.change("consolidate", {})

    # ---- looking ----------------------------------------------------------------------------

    @property
    def taught(self) -> dict[Label, int]:
        """Label → how many samples of it were learned."""
        return self._state.taught

    def report(self, *, most: int = 20) -> Report:
        """Was it taught well? Suspects carry the sequence number that ``undo`` takes."""
        return self._classifier.report(most=most, seq_of=self._state.index.find)

    @property
    def undoable(self) -> list[int]:
        """Sequence numbers that ``undo`` takes, oldest first."""
        return list(self.write_ahead.recent)

    def thumbnails(self) -> dict[int, tuple[Label, bytes]]:
        """Sequence number → (label, JPEG) of the small pictures that were kept."""
        return {seq: (label, jpeg) for seq, label, jpeg in self.journal.images("thumbnail")}

    def __repr__(self) -> str:
        inner = repr(self._classifier).removeprefix("<StreamClassifier ")
        return f"<{type(self).__name__} {str(self.path)!r}, {inner}"

    # ---- closing ----------------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """What rebuilds this classifier, besides the tensors of its learner."""
        return self._state.spec()

    def refresh(self) -> None:
        """Catch up with what a writer in another process has learned (readers only)."""
        version = self.journal.database.version()
        if version != self._version:
            self._version = version
            self.write_ahead.recover()

    def close(self) -> None:
        """Checkpoint and release the directory. Not closing loses nothing, only time at opening
        (with ``durable="batch"``: call ``flush`` or ``close``). If samples of a batch cannot be
        made safe because the disk is full, it stays open: free some space and close it again."""
        self.write_ahead.close()
        self.directory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _png(image: object) -> bytes:
    file = io.BytesIO()
    PIL.Image.fromarray(images.rgb(image)).save(file, "PNG")  # lossless: the same feature again
    return file.getvalue()
