"""DurableClassifier: a StreamClassifier in a directory."""

from __future__ import annotations

import io
import time
import warnings
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

import torch
from PIL import Image
from torch import Tensor

from verse import backbones, checkpoint, images
from verse.backbones import Backbone
from verse.classifier import NotExact, StreamClassifier, check_label
from verse.durable.directory import Directory, Start
from verse.durable.journal import JournalFull
from verse.durable.lesson import Lesson, Outcome
from verse.durable.rows import Entry
from verse.kernels.interrupts import deferred_interrupt
from verse.types import BadLabel, BadSetting, BadState, Label, Refused

UNDO_WINDOW = 100  # samples that can be taken back
CHECKPOINT_EVERY = 25  # samples, which opening would have to replay, if it is cheap enough
LONGEST_JOURNAL = 1000  # entries after which a checkpoint is written however long it takes
BATCH_ENTRIES, BATCH_SECONDS = 32, 0.5
RETRY_SECONDS = 10  # after a checkpoint that could not be written
REMEMBERED = ("learner", "settings", "memory", "capacity", "per_class", "byte_limit",
              "memory_dtype", "seed")  # fmt: skip
NOTHING: dict[str, Any] = {"names": [], "known": [], "taught": []}


class TooLate(BadSetting):
    """The sample is not among the latest ones, so it cannot be undone."""


class Taken(BadLabel):
    """There is a class of that label already."""


class Repaired(UserWarning):
    """A damaged checkpoint was found and replaced by replaying the journal from an older one."""


class Options(TypedDict, total=False):
    """What a new directory takes from ``StreamClassifier``, and an existing one remembers."""

    at: str | None
    weights: str | Path | None
    learner: str
    settings: Mapping[str, Any] | None
    memory: str
    capacity: int | None
    per_class: int | None
    byte_limit: int | None
    memory_dtype: str
    precision: str
    seed: int


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

    >>> import tempfile
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
        for unknown in sorted(set(options) - set(Options.__annotations__)):
            known = ", ".join(Options.__annotations__)
            raise BadSetting(f"no option {unknown!r}; there are {known}")
        self.path, self.durable, self.readonly = Path(path), durable, readonly
        self.taught: dict[Label, int] = {}  # label → how many samples were learned
        self._broken = ""
        self._position = 0  # newest entry contained in the state
        self._saved = 0  # newest entry contained in a checkpoint
        self._samples_since = 0  # samples after that
        self._save_when_due = self._save_when_overdue = 0.0  # not before these moments
        self._flush_time = time.monotonic()
        self._recent: deque[int] = deque(maxlen=UNDO_WINDOW)  # samples that can be undone
        self._directory = Directory(self.path, readonly=readonly)
        self._journal = self._directory.journal
        try:
            self._start(backbone, threads, options, keep_images, reread)
        except BaseException:
            self._directory.close()
            raise

    # ---- opening ----------------------------------------------------------------------------

    def _start(
        self,
        backbone: str | Backbone | None,
        threads: int | None,
        options: Options,
        keep_images: bool,
        reread: bool,
    ) -> None:
        saved = self._journal.meta("options")
        if saved is None:
            if self._journal.last or self.readonly:
                raise BadState(f"{self.path} has lost its options: restore a backup")
            super().__init__(backbone=backbone or "efficientnet-lite0", threads=threads, **options)
            self._journal.set_meta("options", {**self._spec, "keep_images": keep_images})
        else:
            keep_images = bool(saved["keep_images"])
            self._reopen(saved, backbone, threads, options, reread)
        self.keep_images = keep_images
        self._version = self._journal.version()
        if not self.readonly:
            self._note_circumstances()
        if saved is not None and saved["G"] != self.backbone.key:
            self._reread()
        else:
            self._recover()
        if not self.readonly:
            if self._journal.contains("forget"):  # killed before it was done
                self._save(window=0)
            self._directory.remove_old_files()
            self._after_group()  # killed again, it need not replay all this again

    def _reopen(
        self,
        saved: dict[str, Any],
        backbone: str | Backbone | None,
        threads: int | None,
        options: Options,
        reread: bool,
    ) -> None:
        """Build what the directory remembers; refuse what does not fit it."""
        movable = {"weights", "at", "precision"} if reread else {"weights"}
        for name, value in options.items():
            if name not in movable and saved[name] != value:
                raise BadSetting(
                    f"{self.path} was begun with {name}={saved[name]!r}, not {value!r}: leave the "
                    "option out, or begin another directory"
                )
        if not isinstance(backbone, Backbone):
            if backbone is None and saved["backbone"] not in backbones.names():
                raise BadSetting(
                    f"{self.path} was taught with the backbone {saved['backbone']!r}, which is not "
                    "built by name: hand it over as backbone=…"
                )
            same = backbone in (None, saved["backbone"])
            backbone = backbones.build(
                backbone or saved["backbone"],
                at=options.get("at", saved["at"] if same else None),
                weights=options.get("weights", saved["weights"] if same else None),
                precision=options.get("precision", saved["precision"]),
                batchnorm=saved.get("batchnorm", "frozen"),  # absent in directories of before
                threads=threads,
            )
        if backbone.key != saved["G"]:
            if not reread or self.readonly:
                way_out = "; reread=True teaches it anew from the kept images"
                raise BadState(
                    f"{self.path} was taught with another backbone ({saved['backbone']} at "
                    f"{saved['at']}, or other weights): its features do not fit"
                    f"{way_out if saved['keep_images'] else ''}"
                )
            if not saved["keep_images"]:
                raise BadState("no images were kept, so they cannot be read again")
        super().__init__(backbone=backbone, **{name: saved[name] for name in REMEMBERED})
        self._spec["weights"] = saved["weights"]

    def _note_circumstances(self) -> None:
        saved, now = self._journal.meta("circumstances"), checkpoint.circumstances()
        if saved is not None and checkpoint.differences(saved):
            changed = "; ".join(checkpoint.differences(saved))
            warnings.warn(f"not exact: {changed}", NotExact, stacklevel=5)
        if saved != now:
            self._journal.set_meta("circumstances", now)

    def _recover(self, before: int | None = None) -> None:
        """Load the newest checkpoint (before an entry, if given) and replay the journal."""
        if self.readonly:
            for _ in range(20):  # a writer may remove a checkpoint between its name and its content
                try:
                    with self._journal.reading():
                        self._rebuild(self._directory.starts(before)[:1])
                    return
                except BadState:
                    time.sleep(0.02)
        with self._journal.reading():
            self._rebuild(self._directory.starts(before))

    def _rebuild(self, starts: Sequence[Start]) -> None:
        problems: list[BadState] = []
        for start in starts:
            try:
                self._load(*start)
                break
            except BadState as error:
                problems.append(error)
        else:
            raise problems[0] if problems else BadState(f"{self.path} has lost its checkpoints")
        self._position = self._saved = start[0]
        self._samples_since = 0
        for entry in self._journal.since(start[0]):
            self._replay(entry)
        self._recent = deque(self._journal.latest_samples(UNDO_WINDOW), UNDO_WINDOW)
        if problems:
            warnings.warn(f"{problems[0]}; repaired from the journal", Repaired, stacklevel=6)
            self._saved = -1  # closing writes a sound one

    def _load(self, position: int, file: str | None) -> None:
        if file is None:
            self._become(self.twin().learner.state(), NOTHING)
            return
        tensors, spec = self._directory.load(position, file)
        if spec["G"] != self.backbone.key:
            raise BadState(f"{file} was taught with another backbone")
        self._become(tensors, spec)

    def _become(self, tensors: dict[str, Tensor], spec: dict[str, Any]) -> None:
        self.learner.load_state(tensors)
        self._names = list(spec["names"])
        self._numbers = {label: number for label, number in spec["known"]}  # noqa: C416
        self.taught = {label: count for label, count in spec["taught"]}  # noqa: C416

    def _replay(self, entry: Entry) -> None:
        if entry.fate == "kept" and entry.kind == "learn":
            z = torch.frombuffer(bytearray(entry.z or b""), dtype=torch.float32)
            # refused again, as it was when it came: only the mark had not been written
            with suppress(Refused):
                self._learn(z.reshape(self.backbone.F.z_shape), entry.arguments["label"])
        elif entry.fate == "kept":
            self._apply(entry.kind, entry.arguments)
        self._position = entry.seq

    def _reread(self) -> None:
        """Teach everything anew from the kept images with the present backbone, all or nothing."""
        self._load(0, None)
        for _, label, image in self._journal.images("image"):
            with suppress(Refused):
                self._learn(self.features([image])[0], label)
        self._position = self._journal.last
        self._save(window=0, meta={"options": {**self._spec, "keep_images": True}})

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
        self._writable()
        lessons = [Lesson(self._own(n.z), check_label(n.label), n.key, n.images) for n in lessons]
        with deferred_interrupt():
            written = [self._write(lesson) for lesson in lessons]
            if self.durable == "each":
                self._flush_or_discard()
            outcomes = [
                self._learn_written(lesson, seq, ask) if new else Outcome(seq, repeated=True)
                for lesson, (seq, new) in zip(lessons, written, strict=True)
            ]
            self._after_group()
            return outcomes

    def _write(self, lesson: Lesson) -> tuple[int, bool]:
        """(its number, is it new)."""
        known = self.seq_of(lesson.key)
        if known is not None:
            return known, False
        arguments, raw = {"label": lesson.label}, lesson.z.numpy().tobytes()
        return self._journal.add(
            "learn", arguments, raw, key=lesson.key, images=lesson.images
        ), True

    def _learn_written(self, lesson: Lesson, seq: int, ask: bool) -> Outcome:
        """The journal has it; now the learner. A crash between the two loses nothing."""
        guess, error = None, None
        try:
            guess = self.predict_feature(lesson.z) if ask else None
            self._learn(lesson.z, lesson.label)
            self._recent.append(seq)
        except Exception as raised:
            error = raised
            self._refuse(seq, raised)
        self._position = seq
        return Outcome(seq, guess=guess, error=error)

    def _learn(self, z: Tensor, label: Label) -> None:
        # its own aligned storage, live and replayed alike: the bits of products depend on it
        super().learn_feature(z.clone(), label)
        self.taught[label] = self.taught.get(label, 0) + 1
        self._samples_since += 1

    def _own(self, z: Tensor) -> Tensor:
        """The feature as the journal keeps it; what could never be learned stops here."""
        z = z.detach().to("cpu", torch.float32).contiguous()
        if tuple(z.shape) != self.backbone.F.z_shape:
            raise Refused(f"a feature has shape {self.backbone.F.z_shape}, not {tuple(z.shape)}")
        if not bool(torch.isfinite(z).all()):
            raise Refused("the feature is not finite; nothing was learned")
        return z

    def _refuse(self, seq: int, reason: Exception) -> None:
        self._journal.refuse(seq)
        if self.durable == "batch":
            return
        try:
            self._flush_or_discard()
        except JournalFull:
            # Refused is refused again on replay; anything else might then be learned
            if not isinstance(reason, Refused):
                self._broken = f"sample {seq} failed ({reason}) and the disk is full"

    def seq_of(self, key: str | None) -> int | None:
        """The sequence number a key was learned under, or None."""
        return self._journal.seq_of(key) if key is not None else None

    # ---- safety -----------------------------------------------------------------------------

    def flush(self) -> None:
        """Make everything learned so far durable (only "batch" ever has something pending).

        If the disk is full, it stays pending: free some space and flush again.
        """
        try:
            self._journal.flush()
        except JournalFull as error:
            raise JournalFull(
                f"{error.__cause__}: the latest samples are learned, but not yet safe; free some "
                "disk space and flush again"
            ) from error
        self._flush_time = time.monotonic()

    def _flush_or_discard(self) -> None:
        try:
            self._journal.flush()
        except BaseException:
            self._journal.discard()
            raise

    def _after_group(self) -> None:
        """Flush a due batch; checkpoint when it is due and cheap enough, or overdue."""
        now = time.monotonic()
        if self.durable == "batch" and (
            self._journal.pending >= BATCH_ENTRIES or now - self._flush_time > BATCH_SECONDS
        ):
            self.flush()
        due = self._samples_since >= CHECKPOINT_EVERY
        overdue = self._position - self._saved >= LONGEST_JOURNAL
        if (due and now >= self._save_when_due) or (overdue and now >= self._save_when_overdue):
            with suppress(JournalFull):  # the journal holds everything: try again later
                self._save(window=UNDO_WINDOW)

    def _save(self, *, window: int, meta: Mapping[str, Any] | None = None) -> None:
        """A checkpoint, after which the latest ``window`` samples can still be undone."""
        start = time.monotonic()
        self._save_when_due = self._save_when_overdue = start + RETRY_SECONDS  # if it fails
        self._directory.save(
            self._position, self.learner.state(), self.spec(), window=window, meta=meta
        )
        self._saved, self._samples_since = self._position, 0
        # at most a twentieth of the time goes into checkpoints, however large the memory is
        end = time.monotonic()
        self._save_when_due, self._save_when_overdue = end + 20 * (end - start), 0.0
        if not window:
            self._recent.clear()

    # ---- changing one's mind ----------------------------------------------------------------

    def undo(self, seq: int | None = None) -> Label:
        """Take back one of the latest samples (default: the last): as if it had never come."""
        self._writable()
        self.flush()
        if seq is None and self._recent:
            seq = self._recent[-1]
        if seq is None or seq not in self._recent:
            raise TooLate(
                f"sample {seq} cannot be undone: it is not among the last {UNDO_WINDOW}, was "
                "undone already, or a class was forgotten since"
            )
        label: Label = self._journal.entry(seq).arguments["label"]
        with deferred_interrupt():
            self._journal.undo(seq)
            self._recover(seq)
        return label

    def forget(self, label: Label) -> int:
        """Retire a class for good: its samples leave memory, journal and old checkpoints.

        Weights shared with other classes are not unlearned. Samples before this moment can no
        longer be undone. An error after the class is retired means that the files are not wiped
        yet; opening the directory again does it.
        """
        self._number(label)
        removed: int = self._change("forget", {"label": label}, (label, None))
        try:
            with deferred_interrupt():
                self._save(window=0)
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
        self._change("rename", {"label": label, "new": new}, (label, new))

    def merge(self, label: Label, into: Label) -> int:
        """Two labels are one class: what is remembered of ``label`` becomes ``into``."""
        self._number(label)
        self._number(into)
        if label == into:
            raise BadSetting("a class cannot be merged into itself")
        moved: int = self._change("merge", {"label": label, "new": into}, (label, into))
        return moved

    def consolidate(self) -> None:
        """Deferred learning of the methods that have it."""
        self._change("consolidate", {}, None)

    def _change(
        self, kind: str, arguments: dict[str, Any], relabel: tuple[Label, Label | None] | None
    ) -> Any:
        """Write down something that is not a sample, then do it."""
        self._writable()
        self.flush()
        with deferred_interrupt():
            seq = self._journal.add(kind, arguments)
            if relabel is not None:
                self._journal.relabel_images(*relabel)
            self._flush_or_discard()
            try:
                result = self._apply(kind, arguments)
            except BaseException:  # perhaps half done
                self._journal.refuse(seq)
                self._flush_or_discard()
                self._recover()
                raise
            self._position = seq
            return result

    def _apply(self, kind: str, arguments: dict[str, Any]) -> Any:
        """Do what an entry says. After an undo its class may never have come: then it means
        nothing, or merging into that class is renaming."""
        if kind == "consolidate":
            return super().consolidate()
        label: Label = arguments["label"]
        if label not in self._numbers:
            return 0
        if kind == "forget":
            self._names[self._numbers[label]] = ""  # the name goes too
            del self.taught[label]
            return super().forget(label)
        new: Label = arguments["new"]
        self.taught[new] = self.taught.get(new, 0) + self.taught.pop(label)
        if kind == "rename" or new not in self._numbers:
            return super().rename(label, new)
        return super().merge(label, new)

    def _writable(self) -> None:
        if self.readonly:
            raise BadSetting("opened with readonly=True: it answers, but does not learn")
        if self._broken:
            raise BadState(f"{self._broken}: open the directory again")

    # ---- looking, closing -------------------------------------------------------------------

    def spec(self) -> dict[str, Any]:
        """What rebuilds this classifier, besides the tensors of its learner."""
        place = {"position": self._position, "taught": list(self.taught.items())}
        return super().spec() | place

    def twin(self) -> StreamClassifier:
        """A classifier of the same settings that has learned nothing; it is not on disk."""
        arguments: dict[str, Any] = {name: self._spec[name] for name in REMEMBERED}
        return StreamClassifier(backbone=self.backbone, **arguments)

    @property
    def names(self) -> tuple[Label, ...]:
        """The label of each number that the learner knows a class by, forgotten ones included."""
        return tuple(self._names)

    @property
    def undoable(self) -> list[int]:
        """Sequence numbers that ``undo`` takes, oldest first."""
        return list(self._recent)

    def thumbnails(self) -> dict[int, tuple[Label, bytes]]:
        """Sequence number → (label, JPEG) of the small pictures that were kept."""
        return {seq: (label, jpeg) for seq, label, jpeg in self._journal.images("thumbnail")}

    def refresh(self) -> None:
        """Catch up with what a writer in another process has learned (readers only)."""
        version = self._journal.version()
        if version != self._version:
            self._version = version
            self._recover()

    def close(self) -> None:
        """Checkpoint and release the directory. Not closing loses nothing, only time at opening
        (with ``durable="batch"``: call ``flush`` or ``close``)."""
        try:
            if not self.readonly and not self._broken:
                self.flush()
                if self._position > self._saved:
                    with suppress(JournalFull):
                        self._save(window=UNDO_WINDOW)
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
