"""open(path): a classifier that lives in a directory and survives being killed at any moment."""

from __future__ import annotations

import io
import time
import warnings
from collections import deque
from pathlib import Path
from typing import Any, Self

import filelock
import torch
from PIL import Image
from torch import Tensor

from verse import backbones, checkpoint, images
from verse.backbones import Backbone
from verse.classifier import NotExact, StreamClassifier, check_label
from verse.journal import Entry, Journal, JournalFull
from verse.kernels.interrupts import deferred_interrupt
from verse.types import BadSetting, BadState, Label, Refused, VerseError

UNDO_WINDOW = 100  # samples that can be taken back
LONGEST_JOURNAL = 1000  # entries after which a checkpoint is written however long it takes
REMEMBERED = ("learner", "settings", "memory", "capacity", "per_class", "byte_limit",
              "memory_dtype", "seed")  # fmt: skip
BATCH_ENTRIES, BATCH_SECONDS = 32, 0.5


class Locked(VerseError):
    """Another process has the directory open for writing."""


def open(path: str | Path, **options: Any) -> DurableClassifier:  # noqa: A001
    """Open a durable classifier, or begin one if the directory is new. See ``DurableClassifier``.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with open(folder, backbone=backbones.identity((3,))) as classifier:
    ...     classifier.learn_one(torch.ones(3), "mug")
    1
    >>> with open(folder, backbone=backbones.identity((3,))) as classifier:
    ...     classifier.classes
    ['mug']
    """
    return DurableClassifier(path, **options)


class DurableClassifier(StreamClassifier):
    """A ``StreamClassifier`` in a directory: when ``learn_one`` returns, the sample is safe.

    The directory holds a journal (the exact feature and label of every recent sample, flushed to
    disk before it is learned) and checkpoints. Opening loads the newest checkpoint and replays the
    journal: weights and memory are bit-identical to those of a run that was never interrupted.

    Options of a new directory are those of ``StreamClassifier``; an existing one remembers them,
    and giving different ones is an error. Further options:

    - ``durable``: "each" (default) flushes every sample; "batch" groups them: up to 32 samples or
      half a second of teaching may be lost in a crash, never more, and never a part of one.
    - ``keep_images``: keep every taught image, so that another backbone can take over
      (``reread=True``). Grows without bound; off by default.
    - ``readonly``: look and predict only; any number of readers beside one writer.
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
        **options: Any,
    ) -> None:
        if durable not in ("each", "batch"):
            raise BadSetting(f"durable {durable!r}: use 'each' or 'batch'")
        self.path = Path(path)
        self.durable, self.readonly = durable, readonly
        if readonly and not (self.path / "journal.sqlite").exists():
            raise BadState(f"there is no classifier in {self.path}")
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = filelock.FileLock(self.path / "lock")
        if not readonly:
            try:
                self._lock.acquire(timeout=0)
            except filelock.Timeout:
                raise Locked(
                    f"{self.path} is open for writing in another process: close that first, or "
                    "open with readonly=True"
                ) from None
        try:
            self._journal = Journal(self.path / "journal.sqlite", readonly=readonly)
            self._start(backbone, threads, options, keep_images, reread)
        except BaseException:
            self._lock.release()
            raise

    def _start(
        self,
        backbone: str | Backbone | None,
        threads: int | None,
        options: dict[str, Any],
        keep_images: bool,
        reread: bool,
    ) -> None:
        saved = self._journal.meta("options")
        if saved is None:
            super().__init__(backbone=backbone or "efficientnet-lite0", threads=threads, **options)
            self.keep_images = keep_images
            self._journal.set_meta(
                "options", {**self._spec, "keep_images": keep_images, "given": sorted(options)}
            )
        else:
            self.keep_images = bool(saved["keep_images"])
            self._reopen(saved, backbone, threads, options, reread)
        self._position = 0  # newest entry contained in the state
        self._since_checkpoint = 0
        self._checkpoint_seconds = 0.0
        self._checkpoint_time = self._flush_time = time.monotonic()
        self._recent: deque[int] = deque(maxlen=UNDO_WINDOW)  # samples that can be undone
        if reread and saved is not None and saved["G"] != self.backbone.key:
            self._reread()
        else:
            self._recover(None)

    def _reopen(
        self,
        saved: dict[str, Any],
        backbone: str | Backbone | None,
        threads: int | None,
        options: dict[str, Any],
        reread: bool,
    ) -> None:
        for name, value in options.items():
            if name in saved and saved[name] != value:
                raise BadSetting(
                    f"{self.path} was begun with {name}={saved[name]!r}, not {value!r}: leave the "
                    "option out, or begin another directory"
                )
        if not isinstance(backbone, Backbone):
            backbone = backbones.build(
                backbone or saved["backbone"],
                at=saved["at"] if backbone in (None, saved["backbone"]) else None,
                weights=options.get("weights", saved["weights"]),
                precision=saved["precision"],
                threads=threads,
            )
        if backbone.key != saved["G"]:
            if not reread:
                raise BadState(
                    f"{self.path} was taught with another backbone ({saved['backbone']} at "
                    f"{saved['at']}, or other weights): its features do not fit"
                    + ("; reread=True teaches it anew from the kept images" if saved["keep_images"]
                       else "")
                )  # fmt: skip
            if not saved["keep_images"]:
                raise BadState("no images were kept, so they cannot be read again")
        super().__init__(backbone=backbone, **{name: saved[name] for name in REMEMBERED})
        self._spec["weights"] = saved["weights"]

    # ---- recovering -------------------------------------------------------------------------

    def _recover(self, before: int | None) -> None:
        """Load the newest checkpoint (before an entry, if given) and replay the journal."""
        position = 0
        found = [c for c in self._journal.checkpoints() if before is None or c[0] < before]
        if found:
            position, file = found[0]
            tensors, document = checkpoint.read(self.path / file)
            changed = checkpoint.differences(document["circumstances"])
            if changed and before is None:
                warnings.warn(f"not exact: {'; '.join(changed)}", NotExact, stacklevel=4)
            self._become(tensors, document["spec"])
        else:
            self._become(self._fresh_state(), {"names": [], "known": []})
        self._position = position
        self._since_checkpoint = 0
        for entry in self._journal.since(position):
            self._replay(entry)
            self._position = entry.seq
            self._since_checkpoint += 1
        oldest = self._journal.checkpoints()[-1][0] if self._journal.checkpoints() else 0
        self._recent.clear()
        self._recent.extend(
            e.seq for e in self._journal.since(oldest) if e.kind == "learn" and e.fate == "kept"
        )

    def _fresh_state(self) -> dict[str, Tensor]:
        arguments: dict[str, Any] = {name: self._spec[name] for name in REMEMBERED}
        return StreamClassifier(backbone=self.backbone, **arguments).learner.state()

    def _become(self, tensors: dict[str, Tensor], spec: dict[str, Any]) -> None:
        self.learner.load_state(tensors)
        self._names = list(spec["names"])
        self._numbers = {label: number for label, number in spec["known"]}  # noqa: C416

    def _replay(self, entry: Entry) -> None:
        if entry.fate != "kept":
            return
        if entry.kind != "learn":
            getattr(StreamClassifier, entry.kind)(self, **entry.arguments)
            return
        z = torch.frombuffer(bytearray(entry.z or b""), dtype=torch.float32)
        try:
            super().learn_feature(z.reshape(self.backbone.F.z_shape), entry.arguments["label"])
        except Refused:  # written but not yet marked when the process died
            if not self.readonly:
                self._journal.refuse(entry.seq)

    def _reread(self) -> None:
        """Teach everything anew from the kept images with the present backbone."""
        self._become(self._fresh_state(), {"names": [], "known": []})
        for _, label, image in self._journal.images():
            super().learn_feature(self.features([image])[0], label)
        self._position = self._journal.last()
        self._journal.set_meta("options", {**self._spec, "keep_images": True, "given": []})
        self._checkpoint(forget=True)

    # ---- teaching ---------------------------------------------------------------------------

    def learn_one(self, image: object, label: Label, *, key: str | None = None) -> int:  # type: ignore[override]
        """Learn one image; on return it is safe (see ``durable``). Returns its sequence number.

        With an idempotency ``key``, a repeated call is recognised and learned only once.
        """
        label = check_label(label)
        known = self._known(key)
        if known is not None:
            return known
        z = self.features([image])[0]
        return self.learn_feature(z, label, key=key, image=self._encoded(image))

    def learn_feature(  # type: ignore[override]
        self, z: Tensor, label: Label, *, key: str | None = None, image: bytes | None = None
    ) -> int:
        label = check_label(label)
        self._writable()
        with deferred_interrupt():
            known = self._known(key)
            return known if known is not None else self._learn_and_keep(z, label, key, image)

    def _learn_and_keep(self, z: Tensor, label: Label, key: str | None, image: bytes | None) -> int:
        """First into the journal, then into the learner: a crash between the two loses nothing."""
        if self.durable == "batch":
            self._journal.begin_batch()
        raw = z.detach().cpu().contiguous().float().numpy().tobytes()
        seq = self._journal.append("learn", {"label": label}, raw, key=key, image=image)
        try:
            super().learn_feature(z, label)
        except BaseException:
            self._journal.refuse(seq)
            raise
        finally:
            self._position = seq
        self._recent.append(seq)
        self._after_entry()
        return seq

    def _known(self, key: str | None) -> int | None:
        return self._journal.seq_of(key) if key is not None else None

    def _encoded(self, image: object) -> bytes | None:
        if not self.keep_images:
            return None
        file = io.BytesIO()
        Image.fromarray(images.rgb(image)).save(file, "PNG")  # lossless: the same feature again
        return file.getvalue()

    def _after_entry(self) -> None:
        """Flush a due batch; checkpoint when the undo window has passed and it is cheap enough."""
        now = time.monotonic()
        self._since_checkpoint += 1
        if self.durable == "batch" and (
            self._since_checkpoint % BATCH_ENTRIES == 0 or now - self._flush_time > BATCH_SECONDS
        ):
            self.flush()
        if self._since_checkpoint < UNDO_WINDOW:
            return
        # at most a twentieth of the time goes into checkpoints, however large the memory is
        affordable = now - self._checkpoint_time >= 20 * self._checkpoint_seconds
        if affordable or self._since_checkpoint >= LONGEST_JOURNAL:
            self._checkpoint()

    def flush(self) -> None:
        """Make everything learned so far durable (only "batch" ever has something pending)."""
        self._journal.flush()
        self._flush_time = time.monotonic()

    def _checkpoint(self, *, forget: bool = False) -> None:
        """Write the state; keep one older checkpoint, so that the last samples can be undone."""
        start = time.monotonic()
        self._journal.flush()
        kept = self._journal.checkpoints()
        drop_before = self._position if forget else (kept[0][0] if kept else 0)
        file = f"checkpoint-{self._position:012d}.verse"
        try:
            checkpoint.write(self.path / file, self.learner.state(), self.spec())
        except OSError as error:
            if forget:
                raise JournalFull(f"cannot write {file}: {error}") from error
            return  # the journal holds everything; try again later
        self._journal.record_checkpoint(self._position, file, drop_before=drop_before)
        listed = {name for _, name in self._journal.checkpoints()}
        for old in self.path.glob("checkpoint-*.verse"):
            if old.name not in listed:
                old.unlink()
        self._since_checkpoint = 0
        self._checkpoint_time = time.monotonic()
        self._checkpoint_seconds = self._checkpoint_time - start

    # ---- changing one's mind ----------------------------------------------------------------

    def undo(self, seq: int | None = None) -> Label:
        """Take back one of the latest samples (default: the last): as if it had never come."""
        self._writable()
        self.flush()
        if seq is None and self._recent:
            seq = self._recent[-1]
        if seq is None or seq not in self._recent:
            raise BadSetting(
                f"sample {seq} is not among the last {UNDO_WINDOW}: it cannot be undone"
            )
        entry = next(e for e in self._journal.since(seq - 1) if e.seq == seq)
        self._journal.undo(seq)
        self._recover(seq)
        label: Label = entry.arguments["label"]
        return label

    def forget(self, label: Label) -> int:
        """Retire a class for good: its samples leave memory, journal and old checkpoints.

        Weights shared with other classes are not unlearned. Samples before this moment can no
        longer be undone.
        """
        removed: int = self._structural("forget", {"label": label})
        self._journal.drop_images(label)
        self._checkpoint(forget=True)
        self._journal.wipe_log()
        self._recent.clear()
        return removed

    def rename(self, label: Label, new: Label) -> None:
        self._structural("rename", {"label": label, "new": new})

    def merge(self, label: Label, into: Label) -> int:
        moved: int = self._structural("merge", {"label": label, "into": into})
        return moved

    def consolidate(self) -> None:
        self._structural("consolidate", {})

    def _structural(self, kind: str, arguments: dict[str, Any]) -> Any:
        """Do something that is not a sample, then write it down; all of it or nothing."""
        self._writable()
        before, spec = {k: v.clone() for k, v in self.learner.state().items()}, self.spec()
        result = getattr(StreamClassifier, kind)(self, **arguments)
        try:
            self._position = self._journal.append(kind, arguments)
            self.flush()
        except BaseException:
            self._become(before, spec)
            raise
        self._since_checkpoint += 1
        return result

    def _writable(self) -> None:
        if self.readonly:
            raise BadSetting("opened with readonly=True: it answers, but does not learn")

    # ---- closing ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Catch up with what a writer in another process has learned (readers only)."""
        self._recover(None)

    def close(self) -> None:
        """Checkpoint and release the directory. Not closing loses nothing, only time at opening."""
        if not self.readonly and self._since_checkpoint:
            self._checkpoint()
        self._journal.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
