"""A classifier on disk: what was acknowledged survives anything, to the last bit."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import verse
from verse import backbones, checkpoint, durable, learners
from verse.classifier import NotExact, StreamClassifier
from verse.durable import JournalFull, Lesson, Locked, Repaired, TooLate, pace, write_ahead
from verse.types import BadLabel, BadSetting, BadState, Refused, VerseError

DIM = 6
State = dict[str, torch.Tensor]


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints every few samples, so that every case comes up soon."""
    monkeypatch.setattr(write_ahead, "UNDO_WINDOW", 10)
    monkeypatch.setattr(pace, "CHECKPOINT_EVERY", 7)
    monkeypatch.setattr(pace, "LONGEST_JOURNAL", 40)


def stream(n: int, classes: int = 4, seed: int = 0) -> list[tuple[torch.Tensor, str]]:
    rng = np.random.default_rng(seed)
    return [
        (torch.from_numpy(rng.normal(size=DIM).astype(np.float32)), f"class {t * classes // n}")
        for t in range(n)
    ]


def opened(path: Path, **options) -> durable.DurableClassifier:
    return verse.open(path, backbone=backbones.identity((DIM,)), **options)


def state(classifier: StreamClassifier) -> State:
    return {k: v.clone() for k, v in classifier.learner.state().items()}


def same(a: StreamClassifier | State, b: StreamClassifier | State) -> bool:
    a, b = (x if isinstance(x, dict) else state(x) for x in (a, b))
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def clean(samples, learner: str | None = None, **options) -> StreamClassifier:
    """A run that was never interrupted."""
    chosen = {"learner": learner} if learner else {}
    classifier = StreamClassifier(backbone=backbones.identity((DIM,)), **chosen, **options)
    for z, label in samples:
        classifier.learn_feature(z, label)
    return classifier


def teach(path: Path, samples, **options) -> None:
    with opened(path, **options) as classifier:
        for z, label in samples:
            classifier.learn_feature(z, label)


def abandon(classifier: durable.DurableClassifier) -> None:
    """What a killed process leaves: no flush, no checkpoint, the lock released."""
    classifier._directory.close()


def entries(classifier: durable.DurableClassifier) -> int:
    """How many the journal holds."""
    return int(classifier._journal.database.rows("SELECT count(*) FROM entries")[0][0])


# ---- coming back ------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["verse", "verse-lda", "derpp", "slda", "exstream", "gdumb"])
def test_killed_at_any_time_is_as_never_interrupted(tmp_path, learner) -> None:
    samples = stream(75)
    for stop in (0, 1, 9, 10, 37, 74):
        path = tmp_path / str(stop)
        classifier = opened(path, learner=learner)
        for z, label in samples[:stop]:
            classifier.learn_feature(z, label)
        abandon(classifier)
        again = opened(path)
        assert again.samples == stop
        assert same(again, clean(samples[:stop], learner))
        for z, label in samples[stop:]:
            again.learn_feature(z, label)
        assert same(again, clean(samples, learner))
        again.close()


def test_options_are_remembered_and_different_ones_refused(tmp_path) -> None:
    teach(tmp_path, stream(3), learner="derpp", seed=3, settings={"lr": 0.02}, per_class=5)
    with opened(tmp_path) as classifier:
        assert classifier.learner_name == "derpp"
        assert same(
            classifier, clean(stream(3), "derpp", seed=3, settings={"lr": 0.02}, per_class=5)
        )
    for wrong in ({"learner": "verse"}, {"seed": 4}, {"per_class": 6}):
        with pytest.raises(BadSetting, match="was begun with"):
            opened(tmp_path, **wrong)
    with pytest.raises(BadSetting, match="no option 'lerner'"):
        opened(tmp_path, lerner="verse")
    # of the settings, those that are given count; named or not, a default is in force
    for right in ({"lr": 0.02}, {"C": 16}, {}, None):
        opened(tmp_path, settings=right).close()
    for wrong in ({"lr": 0.03}, {"lr": 0.02, "C": 8}, {"lrr": 0.02}):
        with pytest.raises(BadSetting, match="was begun with settings="):
            opened(tmp_path, settings=wrong)


@pytest.mark.parametrize("full", [True, False], ids=["new", "of before"])
def test_a_default_that_changes_leaves_a_directory_as_it_was(tmp_path, monkeypatch, full) -> None:
    samples = stream(20)
    with opened(tmp_path, settings={"C": 8}) as classifier:
        if not full:  # what a version of before wrote down
            saved = classifier._journal.meta("options")
            classifier._journal.set_meta("options", saved | {"settings": {"C": 8}})
    opened(tmp_path, settings={"C": 8}).close()  # from here on it remembers all of them
    expected = clean(samples, settings={"C": 8})
    monkeypatch.setitem(learners.VERSELDA.__init__.__kwdefaults__, "beta", 0.5)
    assert not same(clean(samples, settings={"C": 8}), expected)
    classifier = opened(tmp_path, settings={"C": 8})
    for z, label in samples:
        classifier.learn_feature(z, label)
    abandon(classifier)
    with opened(tmp_path) as again:  # replayed
        assert same(again, expected)
        assert again.twin().learner.settings() == expected.learner.settings()


def test_another_backbone_is_refused(tmp_path) -> None:
    teach(tmp_path, stream(3))
    with pytest.raises(BadState, match="another backbone"):
        verse.open(tmp_path, backbone=backbones.identity((DIM + 1,)))
    with pytest.raises(BadSetting, match="hand it over"):
        verse.open(tmp_path)


def test_reopened_by_name_it_normalises_as_before(tmp_path) -> None:
    built = backbones.build("efficientnet-lite0", batchnorm="train")
    with verse.open(tmp_path, backbone=built) as classifier:
        for t in range(3):
            classifier.learn_one(picture(t), "ab"[t % 2])
        taught = {k: v.clone() for k, v in classifier.learner.state().items()}
    with verse.open(tmp_path) as classifier:
        now = classifier.learner.state()
        assert classifier.backbone.F.batchnorm == "train"
        assert now.keys() == taught.keys() and all(torch.equal(now[k], taught[k]) for k in now)


def test_one_writer_many_readers(tmp_path) -> None:
    with opened(tmp_path) as writer:
        writer.learn_feature(torch.ones(DIM), "a")
        with pytest.raises(Locked, match="open for writing"):
            opened(tmp_path)
        with opened(tmp_path, readonly=True) as one, opened(tmp_path, readonly=True) as two:
            assert one.classes == two.classes == ["a"]
            for z, label in stream(60):
                writer.learn_feature(z, label)
            assert one.samples == 1
            one.refresh()
            assert same(one, writer)
            with pytest.raises(BadSetting, match="readonly"):
                one.learn_feature(torch.ones(DIM), "b")
    opened(tmp_path).close()
    with pytest.raises(BadState, match="no classifier"):
        opened(tmp_path / "nowhere", readonly=True)
    assert not (tmp_path / "nowhere").exists()


def test_journal_and_files_are_bounded(tmp_path) -> None:
    with opened(tmp_path) as classifier:
        for z, label in stream(400):
            classifier.learn_feature(z, label)
            n = entries(classifier)
            assert n <= 40 + 40
            assert len(classifier.undoable) == min(classifier.samples, 10)
    assert len(list(tmp_path.glob("checkpoint-*"))) <= 3


def test_opening_often_keeps_the_undo_window(tmp_path) -> None:
    """Every closing writes a checkpoint; the samples before it can still be undone."""
    samples = stream(45)
    for z, label in samples:
        with opened(tmp_path) as classifier:
            classifier.learn_feature(z, label)
    assert len(list(tmp_path.glob("checkpoint-*"))) <= 3
    with opened(tmp_path) as classifier:
        assert classifier.undoable == list(range(36, 46))
        classifier.undo(36)
        assert same(classifier, clean(samples[:35] + samples[36:]))
        n = entries(classifier)
        assert n < 40


def test_overlap_learns_the_same(tmp_path) -> None:
    samples = stream(12)
    with opened(tmp_path) as classifier:
        images, labels = zip(*samples, strict=True)
        assert classifier.learn_many(images, labels, overlap=True) == 12
        assert same(classifier, clean(samples)) and classifier.undoable == list(range(3, 13))


# ---- refusing ---------------------------------------------------------------------------------


def test_a_refused_sample_is_recorded_and_changes_nothing(tmp_path, monkeypatch) -> None:
    samples = stream(6)
    classifier = opened(tmp_path)
    for z, label in samples:
        classifier.learn_feature(z, label)
    before = state(classifier)

    def refuse(gradient, clip):
        raise Refused("made to refuse")

    with monkeypatch.context() as patch:
        patch.setattr(classifier.learner, "clip_scale", refuse)
        with pytest.raises(Refused, match="made to"):
            classifier.learn_feature(torch.ones(DIM), "new")
    assert same(classifier, before) and "new" not in classifier.taught
    assert [e.fate for e in classifier._journal.since(0)] == ["kept"] * 6 + ["refused"]
    with pytest.raises(Refused, match="finite"):
        classifier.learn_feature(torch.full((DIM,), torch.nan), "new")
    with pytest.raises(Refused, match="shape"):
        classifier.learn_feature(torch.ones(DIM + 1), "new")
    with pytest.raises(BadLabel):
        classifier.learn_feature(torch.ones(DIM), "")
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, before) and again.classes == list(again.taught)


def test_killed_before_a_refusal_was_marked(tmp_path, monkeypatch) -> None:
    """The entry is in the journal as kept; replaying refuses it again."""
    classifier = opened(tmp_path)
    classifier.learn_feature(torch.ones(DIM), "a")
    classifier.learn_feature(torch.zeros(DIM), "b")
    huge = torch.full((DIM,), 3e38)  # finite, but its scores are not
    monkeypatch.setattr(classifier._write_ahead, "_refuse", lambda seq, reason: None)
    with pytest.raises(Refused):
        classifier.learn_feature(huge, "a")
    expected = state(classifier)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, expected) and again.samples == 2


def test_a_group_shares_one_flush_and_a_refused_one_harms_no_other(tmp_path) -> None:
    huge = torch.full((DIM,), 3e38)
    with opened(tmp_path) as classifier:
        lessons = [
            Lesson(torch.ones(DIM), "a", "k1"),
            Lesson(torch.zeros(DIM), "b", "k2"),
            Lesson(huge, "a", "k3"),
            Lesson(torch.ones(DIM), "b", "k4"),
            Lesson(torch.ones(DIM), "b", "k4"),
        ]
        first, _, refused, third, repeated = classifier.learn_lessons(lessons, ask=True)
        assert first.learned and third.learned and isinstance(refused.error, Refused)
        assert repeated.repeated and repeated.seq == third.seq
        assert first.guess.label is None and third.guess.label in ("a", "b")
        assert classifier.samples == 3
        learned = [(torch.ones(DIM), "a"), (torch.zeros(DIM), "b"), (torch.ones(DIM), "b")]
        assert same(classifier, clean(learned))


def test_a_key_is_learned_once(tmp_path) -> None:
    samples = stream(60)
    with opened(tmp_path) as classifier:
        seqs = [classifier.learn_feature(z, y, key=f"k{i}") for i, (z, y) in enumerate(samples)]
        assert [
            classifier.learn_feature(z, y, key=f"k{i}") for i, (z, y) in enumerate(samples)
        ] == seqs
    with opened(tmp_path) as classifier:
        assert classifier.learn_feature(*samples[0], key="k0") == seqs[0]
        classifier.undo(seqs[-1])
        assert classifier.learn_feature(*samples[-1], key="k59") == seqs[-1]  # undone stays undone
        assert same(classifier, clean(samples[:-1]))


# ---- changing one's mind ----------------------------------------------------------------------


@pytest.mark.parametrize("back", [1, 2, 5, 10])
def test_undo_is_as_if_it_had_never_come(tmp_path, back) -> None:
    samples = stream(63)
    classifier = opened(tmp_path)
    for z, label in samples:
        classifier.learn_feature(z, label)
    assert classifier.undo(64 - back) == samples[-back][1]
    rest = samples[:-back] + samples[len(samples) - back + 1 :]
    assert same(classifier, clean(rest)) and classifier.samples == 62
    with pytest.raises(TooLate):
        classifier.undo(64 - back)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, clean(rest))


def test_undo_takes_a_class_back_and_ends_with_the_window(tmp_path) -> None:
    with opened(tmp_path) as classifier:
        with pytest.raises(TooLate):
            classifier.undo()
        for t in range(30):
            classifier.learn_feature(torch.ones(DIM) * t, "a")
        classifier.learn_feature(torch.ones(DIM), "new")
        assert classifier.undo() == "new"
        assert classifier.classes == ["a"] and classifier.taught == {"a": 30}
        for _ in range(9):
            classifier.undo()
        assert classifier.samples == 21
        with pytest.raises(TooLate, match="not among the last 10"):
            classifier.undo(2)


def test_rename_and_merge_survive_and_can_lose_their_class(tmp_path) -> None:
    classifier = opened(tmp_path)
    a, b, c = torch.eye(DIM)[:3] * 3
    first = classifier.learn_feature(a, "a")
    second = classifier.learn_feature(b, "b")
    classifier.rename("a", "A")
    classifier.merge("b", "A")
    classifier.learn_feature(c, "c")
    assert classifier.classes == ["A", "c"] and classifier.taught == {"A": 2, "c": 1}
    assert classifier.remembered() == {"A": 2, "c": 1}
    before = state(classifier)
    abandon(classifier)
    classifier = opened(tmp_path)
    assert same(classifier, before) and classifier.classes == ["A", "c"]
    for wrong in (lambda: classifier.rename("x", "y"), lambda: classifier.rename("A", "c"),
                  lambda: classifier.merge("A", "x"), lambda: classifier.merge("A", "A"),
                  lambda: classifier.forget("x"), lambda: classifier.rename("A", " ")):  # fmt: skip
        with pytest.raises((BadLabel, BadSetting)):
            wrong()
    assert same(classifier, before)
    classifier.undo(first)  # then there never was an "a" to rename; merging into it is renaming
    assert classifier.classes == ["A", "c"] and classifier.taught == {"A": 1, "c": 1}
    classifier.undo(second)
    assert classifier.classes == ["c"]
    abandon(classifier)
    with opened(tmp_path) as again:
        assert again.classes == ["c"] and again.samples == 1


def files_hold(path: Path, needle: bytes) -> list[str]:
    return [f.name for f in path.iterdir() if needle in f.read_bytes()]


@pytest.mark.parametrize("crash", ["none", "after the entry", "after the checkpoint"])
def test_forgotten_is_gone_from_every_file(tmp_path, crash, monkeypatch) -> None:
    secret = torch.linspace(3.14159, 2.71828, DIM)
    needle = secret.numpy().tobytes()
    classifier = opened(tmp_path)
    for t in range(25):
        classifier.learn_lessons(
            [Lesson(secret, "secret name", None, {"thumbnail": b"JPEG secret"})]
        )
        classifier.learn_feature(torch.ones(DIM) * t, "other")
    classifier._write_ahead.save(window=10)
    assert files_hold(tmp_path, needle) and files_hold(tmp_path, b"secret name")
    if crash == "after the entry":
        monkeypatch.setattr(classifier._write_ahead, "save", lambda window: None)
    if crash == "after the checkpoint":
        monkeypatch.setattr(classifier._directory, "remove_old_files", lambda: None)
        monkeypatch.setattr(classifier._directory, "_wipe", lambda: None)
    assert classifier.forget("secret name") == 20
    after = state(classifier)
    if crash == "none":
        assert not files_hold(tmp_path, needle)
        assert not files_hold(tmp_path, b"secret")
        with pytest.raises(TooLate):
            classifier.undo()
        classifier.close()
    else:
        abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, after) and again.classes == ["other"]
        assert not files_hold(tmp_path, needle)
        assert not files_hold(tmp_path, b"secret")
        assert again.thumbnails() == {}


def test_consolidate_is_journaled(tmp_path) -> None:
    classifier = opened(tmp_path, learner="gdumb")
    for z, label in stream(12):
        classifier.learn_feature(z, label)
    classifier.consolidate()
    before = state(classifier)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, before)


# ---- batches ----------------------------------------------------------------------------------


def test_batch_mode_loses_at_most_the_last_batch(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pace, "BATCH_SECONDS", 1e9)
    samples = stream(75)
    classifier = opened(tmp_path, durable="batch")
    for z, label in samples:
        classifier.learn_feature(z, label)
    assert same(classifier, clean(samples))
    abandon(classifier)
    with opened(tmp_path, durable="batch") as again:
        kept = again.samples
        assert 75 - 32 < kept <= 75
        assert same(again, clean(samples[:kept]))
        for z, label in samples[kept:]:
            again.learn_feature(z, label)
        again.flush()
        assert same(again, clean(samples))
    with pytest.raises(BadSetting, match="'each' or 'batch'"):
        opened(tmp_path / "x", durable="never")


def test_batch_mode_keeps_what_a_full_disk_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pace, "BATCH_SECONDS", 1e9)
    classifier = opened(tmp_path, durable="batch")
    for z, label in stream(5):
        classifier.learn_feature(z, label)
    with full_disk(), pytest.raises(JournalFull):
        classifier.learn_many([torch.ones(DIM)] * 40, ["more"] * 40)
    learned = classifier.samples
    classifier.flush()
    before = state(classifier)
    abandon(classifier)
    with opened(tmp_path) as again:
        assert again.samples == learned and same(again, before)


# ---- damage -----------------------------------------------------------------------------------


class full_disk:
    """No file of this process may grow: the kernel refuses as on a full disk."""

    def __init__(self, size: int = 0) -> None:
        self.size = size

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.before[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self.before)
        signal.signal(signal.SIGXFSZ, self.handler)


def test_full_disk_refuses_and_keeps_everything(tmp_path) -> None:
    samples = stream(30)
    classifier = opened(tmp_path)
    for z, label in samples[:20]:
        classifier.learn_feature(z, label)
    before = state(classifier)
    with full_disk():
        for act in (
            lambda: classifier.learn_feature(torch.ones(DIM), "new"),
            lambda: classifier.undo(),
            lambda: classifier.rename("class 0", "zero"),
            lambda: classifier.forget("class 0"),
        ):
            with pytest.raises(JournalFull, match="disk"):
                act()
            assert same(classifier, before) and classifier.samples == 20
        assert classifier.predict_feature(torch.ones(DIM)).label is not None
    for z, label in samples[20:]:
        classifier.learn_feature(z, label)
    assert same(classifier, clean(samples))
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, clean(samples))


def test_no_room_for_a_checkpoint_is_no_error(tmp_path, monkeypatch) -> None:
    """The journal holds everything; the checkpoint is tried again later."""

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pace, "RETRY_SECONDS", 0)
    samples = stream(120)
    classifier = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", no_room)
        for z, label in samples[:60]:
            classifier.learn_feature(z, label)
    assert not list(tmp_path.glob("checkpoint-*"))
    for z, label in samples[60:]:
        classifier.learn_feature(z, label)
    assert list(tmp_path.glob("checkpoint-*"))
    abandon(classifier)
    with opened(tmp_path) as again:
        assert same(again, clean(samples))


def test_a_damaged_checkpoint_is_noticed_and_repaired_from_the_journal(tmp_path) -> None:
    samples = stream(57)
    teach(tmp_path, samples)
    newest = max(tmp_path.glob("checkpoint-*"))
    content = bytearray(newest.read_bytes())
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 1 << int(rng.integers(8))
        newest.write_bytes(damaged)
        with pytest.warns(Repaired, match="damaged"), opened(tmp_path, readonly=True) as reader:
            assert same(reader, clean(samples))
    newest.unlink()
    with pytest.warns(Repaired), opened(tmp_path) as again:
        assert same(again, clean(samples))
    with warnings.catch_warnings(), opened(tmp_path) as again:
        warnings.simplefilter("error")
        assert same(again, clean(samples))


def test_flipped_bits_anywhere_never_give_another_state(tmp_path) -> None:
    """Over every file of a directory that was not closed: noticed, repaired, or harmless."""
    samples = stream(24)
    classifier = opened(tmp_path / "live")
    for z, label in samples:
        classifier.learn_feature(z, label)
    source = tmp_path / "source"
    shutil.copytree(tmp_path / "live", source, ignore=shutil.ignore_patterns("*-shm", "lock"))
    classifier.close()
    expected = state(clean(samples))
    rng = np.random.default_rng(0)
    noticed = 0
    for file in sorted(source.iterdir()):
        raw = file.read_bytes()
        for _ in range(6):
            place = int(rng.integers(len(raw) * 8))
            damaged = bytearray(raw)
            damaged[place // 8] ^= 1 << (place % 8)
            now = tmp_path / "now"
            shutil.rmtree(now, ignore_errors=True)
            shutil.copytree(source, now)
            (now / file.name).write_bytes(damaged)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    again = opened(now)
                except VerseError:
                    noticed += 1
                    continue
            assert same(again, expected), f"bit {place} of {file.name}"
            noticed += bool(told)
            abandon(again)
    assert noticed >= 6


def test_left_over_files_are_removed(tmp_path) -> None:
    teach(tmp_path, stream(5))
    for name in (".checkpoint-000000000009.verse.77.part", "checkpoint-000000000099.verse"):
        (tmp_path / name).write_bytes(b"half")
    opened(tmp_path).close()
    assert {p.name for p in tmp_path.iterdir()} == {
        "acknowledged", "checkpoint-000000000005.verse", "journal.sqlite", "lock"
    }  # fmt: skip


def test_other_circumstances_are_told(tmp_path) -> None:
    teach(tmp_path, stream(3))
    torch.set_num_threads(2)
    try:
        with pytest.warns(NotExact, match="threads was 1, is 2"):
            opened(tmp_path).close()
    finally:
        torch.set_num_threads(1)
    with pytest.warns(NotExact):
        opened(tmp_path).close()


# ---- kept images ------------------------------------------------------------------------------


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 255, (32, 32, 3)).astype(np.uint8)


def test_kept_images_let_another_backbone_take_over(tmp_path) -> None:
    old = backbones.build("efficientnet-lite0", at="fc", weights="random")
    new = backbones.build("resnet18", at="fc", weights="random")
    with verse.open(tmp_path, backbone=old, keep_images=True) as classifier:
        for t in range(6):
            classifier.learn_one(picture(t), "ab"[t % 2])
        classifier.undo()
        classifier.rename("a", "A")
        with pytest.raises(BadSetting, match="images"):
            classifier.learn_feature(torch.ones(1280), "a")
        classifier.learn_many([picture(9)], ["c"])
    with pytest.raises(BadState, match="reread=True"):
        verse.open(tmp_path, backbone=new)
    expected = StreamClassifier(backbone=new)
    for t, label in [(0, "A"), (1, "b"), (2, "A"), (3, "b"), (4, "A"), (9, "c")]:
        expected.learn_one(picture(t), label)
    with verse.open(tmp_path, backbone=new, reread=True) as classifier:
        assert same(classifier, expected)
        assert classifier.taught == {"A": 3, "b": 2, "c": 1}
    with verse.open(tmp_path, backbone=new) as classifier:
        assert same(classifier, expected)
    with pytest.raises(BadState, match="another backbone"):
        verse.open(tmp_path, backbone=old)


# ---- kill -9 ----------------------------------------------------------------------------------

WRITER = textwrap.dedent("""
    import sys, torch, verse
    from verse import backbones
    from verse.durable import pace, write_ahead
    torch.set_num_threads(1)
    write_ahead.UNDO_WINDOW, pace.CHECKPOINT_EVERY, pace.LONGEST_JOURNAL = 10, 7, 40
    classifier = verse.open(sys.argv[1], backbone=backbones.identity((6,)))
    while True:
        n = classifier._journal.last
        generator = torch.Generator().manual_seed(n)
        z = torch.randn(6, generator=generator)
        seq = classifier.learn_feature(z, f"class {n % 5}", key=str(n))
        print(seq, flush=True)
""")


def test_kill_9(tmp_path) -> None:
    """Killed at random moments; what was printed is there, in order, once."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    rng = np.random.default_rng(0)
    acknowledged = 0
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, env=environment
        )
        assert writer.stdout is not None
        for _ in range(int(rng.integers(5, 120))):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        rest = writer.stdout.read().split()
        acknowledged = max(acknowledged, *map(int, rest)) if rest else acknowledged
        writer.wait()
        writer.stdout.close()
    with opened(tmp_path) as again:
        n = again.samples
        assert acknowledged <= n <= acknowledged + 1
        expected = clean(
            (torch.randn(DIM, generator=torch.Generator().manual_seed(i)), f"class {i % 5}")
            for i in range(n)
        )
        assert same(again, expected)


def test_a_copy_of_the_directory_at_any_moment_opens(tmp_path) -> None:
    """Power failure: the files as they were, with whatever was in the log."""
    samples = stream(25)
    classifier = opened(tmp_path / "live")
    for t, (z, label) in enumerate(samples, 1):
        classifier.learn_feature(z, label)
        if t in (1, 8, 11, 25):
            copy = tmp_path / f"copy{t}"
            shutil.copytree(tmp_path / "live", copy, ignore=shutil.ignore_patterns("*-shm"))
            with opened(copy) as again:
                assert same(again, clean(samples[:t]))
    classifier.close()
