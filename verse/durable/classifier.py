"""DurableClassifier: a StreamClassifier in a directory."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, Unpack

from PIL import Image
from torch import Tensor

from verse import images
from verse.backbones import Backbone
from verse.classifier import StreamClassifier, check_label
from verse.durable import options as begun
from verse.durable.directory import Directory
from verse.durable.errors import JournalFull, Taken
from verse.durable.lesson import Lesson, Outcome
from verse.durable.options import Options
from verse.durable.replay import Replayed
from verse.durable.write_ahead import WriteAhead
from verse.kernels.interrupts import deferred_interrupt
from verse.types import BadSetting, BadState, Label, Refused


class DurableClassifier(StreamClassifier):
    """A ``StreamClassifier`` in a directory: when ``learn_one`` returns, the sample is safe.

    The directory holds a journal (the exact feature and label of every recent sample, flushed to
    disk before it is learned) and checkpoints. Opening loads the newest checkpoint and replays the
    journal: weights and memory are bit-identical to those of a run that was never interrupted.

    Options of a new directory are those of ``StreamClassifier``; an existing one remembers them,
    and giving different ones is an error. Further options:

    - ``durable``: "each" (default) flushes every sample before it is learned. "batch" learns first
      and flushes with every 32nd sample, or with the first that comes half a second after the last
      flush: a crash may lose those since then (never a part of one). ``flush()`` does it at once.
    - ``keep_images``: keep every taught image, so that another backbone can take over
      (``reread=True``). Grows without bound; off by default.
    - ``readonly``: look and predict only; any number of readers beside one writer.

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
        *,
        durable: str = "each",
        keep_images: bool = False,
        readonly: bool = False,
        reread: bool = False,
        backbone: str | Backbone | None = None,
        threads: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        if durable not in ("each", "batch"):
            raise BadSetting(f"durable {durable!r}: use 'each' or 'batch'")
        begun.refuse_unknown(options)
        self.path, self.durable, self.readonly = Path(path), durable, readonly
        self.keep_images = keep_images
        self._directory = Directory(self.path, readonly=readonly)
        self._journal = self._directory.journal
        self._state = Replayed(self)
        self._write_ahead = WriteAhead(
            self._state, self._directory, batches=durable == "batch", readonly=readonly
        )
        try:
            self._start(backbone, threads, options, reread)
        except BaseException:
            self._directory.close()
            raise

    # ---- opening ----------------------------------------------------------------------------

    def _start(
        self,
        backbone: str | Backbone | None,
        threads: int | None,
        options: Options,
        reread: bool,
    ) -> None:
        saved = self._journal.meta("options")
        if saved is None:
            if self._journal.last or self.readonly:
                raise BadState(f"{self.path} has lost its options: restore a backup")
            super().__init__(backbone=backbone or "efficientnet-lite0", threads=threads, **options)
            self._journal.set_meta("options", {**self._spec, "keep_images": self.keep_images})
        else:
            self._reopen(saved, backbone, threads, options, reread)
        self._version = self._journal.database.version()
        if not self.readonly:
            begun.note_settings(self._journal, self._spec["settings"])
            begun.note_circumstances(self._journal)
        if saved is not None and saved["G"] != self.backbone.key:
            self._reread()
        else:
            self._write_ahead.recover()
        if not self.readonly:
            if self._journal.contains("forget"):  # killed before it was done
                self._write_ahead.save(window=0)
            self._directory.remove_old_files()
            self._write_ahead.after_group()  # killed again, it need not replay all this again

    def _reopen(
        self,
        saved: dict[str, Any],
        backbone: str | Backbone | None,
        threads: int | None,
        options: Options,
        reread: bool,
    ) -> None:
        """Build what the directory remembers; refuse what does not fit it."""
        begun.refuse_different(self.path, saved, options, reread=reread)
        chosen = begun.remembered_backbone(
            self.path, saved, backbone, threads, options, reread=reread and not self.readonly
        )
        remembered: dict[str, Any] = {name: saved[name] for name in begun.REMEMBERED}
        super().__init__(backbone=chosen, **remembered)
        self._spec["weights"] = saved["weights"]
        self.keep_images = bool(saved["keep_images"])

    def _reread(self) -> None:
        """Teach everything anew from the kept images with the present backbone, all or nothing."""
        self._state.begin()
        for _, label, image in self._journal.images("image"):
            with suppress(Refused):
                self._state.learn(self.features([image])[0], label)
        self._state.position = self._journal.last
        self._write_ahead.save(window=0, meta={"options": {**self._spec, "keep_images": True}})

    # ---- teaching ---------------------------------------------------------------------------

    def learn_one(self, image: object, label: Label, *, key: str | None = None) -> int:  # type: ignore[override]
        """Learn one image; on return it is safe (see ``durable``). Returns its sequence number.

        With an idempotency ``key``, a repeated call is recognised and learned only once.
        """
        label = check_label(label)
        known = self.seq_of(key)
        if known is not None:
            return known
        kept = {"image": _png(image)} if self.keep_images else None
        return self._outcome(Lesson(self.features([image])[0], label, key, kept))

    def learn_many(
        self, images: Iterable[object], labels: Iterable[Label], *, overlap: bool = False
    ) -> int:
        """Learn images in this order, each once; returns how many."""
        if not self.keep_images:
            return super().learn_many(images, labels, overlap=overlap)
        return sum(
            self.learn_one(image, label) > 0 for image, label in zip(images, labels, strict=True)
        )

    def learn_feature(self, z: Tensor, label: Label, *, key: str | None = None) -> int:  # type: ignore[override]
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
        return self._write_ahead.learn(lessons, ask=ask)

    def seq_of(self, key: str | None) -> int | None:
        """The sequence number a key was learned under, or None."""
        return self._write_ahead.seq_of(key)

    def flush(self) -> None:
        """Make everything learned so far durable (only "batch" ever has something pending).

        If the disk is full, it stays pending: free some space and flush again.
        """
        self._write_ahead.flush()

    # ---- changing one's mind ----------------------------------------------------------------

    def undo(self, seq: int | None = None) -> Label:
        """Take back one of the latest samples (default: the last): as if it had never come."""
        return self._write_ahead.undo(seq)

    def forget(self, label: Label) -> int:
        """Retire a class for good: its samples leave memory, journal and old checkpoints.

        Weights shared with other classes are not unlearned. Samples before this moment can no
        longer be undone. An error after the class is retired means that the files are not wiped
        yet; opening the directory again does it.
        """
        self._number(label)
        removed: int = self._write_ahead.change("forget", {"label": label}, (label, None))
        try:
            with deferred_interrupt():
                self._write_ahead.save(window=0)
        except JournalFull as error:
            raise JournalFull(
                f"{label!r} is forgotten, but not yet wiped from the files ({error}); opening the "
                "directory again does it"
            ) from error
        return removed

    def rename(self, label: Label, new: Label) -> None:
        """Give a class another label."""
        self._number(label)
        if check_label(new) in self._numbers:
            raise Taken(f"there is a class {new!r} already: merge them instead")
        self._write_ahead.change("rename", {"label": label, "new": new}, (label, new))

    def merge(self, label: Label, into: Label) -> int:
        """Two labels are one class: what is remembered of ``label`` becomes ``into``."""
        self._number(label)
        self._number(into)
        if label == into:
            raise BadSetting("a class cannot be merged into itself")
        moved: int = self._write_ahead.change("merge", {"label": label, "new": into}, (label, into))
        return moved

    def consolidate(self) -> None:
        """Deferred learning of the methods that have it."""
        self._write_ahead.change("consolidate", {})

    # ---- looking, closing -------------------------------------------------------------------

    @property
    def taught(self) -> dict[Label, int]:
        """Label → how many samples of it were learned."""
        return self._state.taught

    def spec(self) -> dict[str, Any]:
        """What rebuilds this classifier, besides the tensors of its learner."""
        return self._state.spec()

    def twin(self) -> StreamClassifier:
        """A classifier of the same settings that has learned nothing; it is not on disk."""
        return begun.twin(self)

    @property
    def names(self) -> tuple[Label, ...]:
        """The label of each number that the learner knows a class by, forgotten ones included."""
        return tuple(self._names)

    @property
    def undoable(self) -> list[int]:
        """Sequence numbers that ``undo`` takes, oldest first."""
        return list(self._write_ahead.recent)

    def thumbnails(self) -> dict[int, tuple[Label, bytes]]:
        """Sequence number → (label, JPEG) of the small pictures that were kept."""
        return {seq: (label, jpeg) for seq, label, jpeg in self._journal.images("thumbnail")}

    def refresh(self) -> None:
        """Catch up with what a writer in another process has learned (readers only)."""
        version = self._journal.database.version()
        if version != self._version:
            self._version = version
            self._write_ahead.recover()

    def close(self) -> None:
        """Checkpoint and release the directory. Not closing loses nothing, only time at opening
        (with ``durable="batch"``: call ``flush`` or ``close``)."""
        try:
            self._write_ahead.close()
        finally:
            self._directory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _png(image: object) -> bytes:
    file = io.BytesIO()
    Image.fromarray(images.rgb(image)).save(file, "PNG")  # lossless: the same feature again
    return file.getvalue()
