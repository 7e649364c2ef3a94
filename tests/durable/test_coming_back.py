"""A classifier on disk comes back as if it had never been interrupted."""

from __future__ import annotations

import pytest
import torch

import verse
from tests.durable.taught import DIM, abandon, clean, entries, opened, picture, same, stream, teach
from verse import backbones, durable, learners
from verse.classifier import StreamClassifier
from verse.durable import Locked
from verse.types import BadData, BadSetting, BadState


@pytest.mark.parametrize(
    "learner", ["verse", "verse-joint", "verse-lda", "derpp", "slda", "exstream", "gdumb"]
)
def test_killed_at_any_time_is_as_never_interrupted(tmp_path, learner) -> None:
    samples = stream(75)
    whole = clean(samples, learner)
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
        assert same(again, whole)
        again.close()


def test_a_closed_one_says_that_it_is_closed(tmp_path) -> None:
    with opened(tmp_path) as classifier:
        classifier.learn_feature(*stream(1)[0])
    for change in (
        lambda: classifier.learn_feature(*stream(1)[0]),
        classifier.undo,
        lambda: classifier.forget("class 0"),
    ):
        with pytest.raises(BadState, match="is closed: open it again"):
            change()


def test_a_file_is_no_classifier_and_a_folder_no_file(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadSetting, match="is a file"):
        opened(tmp_path / "file")
    with pytest.raises(BadState, match=r"is a folder: open it with verse\.open"):
        StreamClassifier.load(tmp_path)


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
            saved = classifier.journal.meta("options")
            classifier.journal.set_meta("options", saved | {"settings": {"C": 8}})
    opened(tmp_path, settings={"C": 8}).close()  # from here on it remembers all of them
    expected = clean(samples, settings={"C": 8})
    # a version that has another default: signatures are read anew
    monkeypatch.setattr(learners, "_keywords", learners._keywords.__wrapped__)
    monkeypatch.setitem(learners.VERSEJoint.__init__.__kwdefaults__, "beta", 0.5)
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
    with pytest.raises(BadState, match="hand it over"):
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
    assert len(list(tmp_path.glob("checkpoint-*"))) <= 4


def test_opening_often_keeps_the_undo_window(tmp_path) -> None:
    """Every closing writes a checkpoint; the samples before it can still be undone."""
    samples = stream(45)
    for z, label in samples:
        with opened(tmp_path) as classifier:
            classifier.learn_feature(z, label)
    assert len(list(tmp_path.glob("checkpoint-*"))) <= 4
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


def test_unequal_lengths_learn_nothing(tmp_path) -> None:
    with opened(tmp_path / "features") as classifier:
        for overlap in (False, True):
            with pytest.raises(BadData, match="nothing was learned"):
                classifier.learn_many([torch.ones(DIM)] * 2, ["a"] * 3, overlap=overlap)
        assert classifier.samples == 0 and entries(classifier) == 0


def test_it_says_what_it_is(tmp_path) -> None:
    with opened(tmp_path, learner="slda") as classifier:
        classifier.learn_feature(torch.ones(DIM), "a")
        said = f"<DurableClassifier {str(tmp_path)!r}, slda on identity at fc: 1 classes, 1 samples"
        assert repr(classifier).startswith(said)
        assert not isinstance(classifier, StreamClassifier)
        classifier.save(tmp_path / "one.verse")
    loaded = StreamClassifier.load(tmp_path / "one.verse", backbone=backbones.identity((DIM,)))
    assert loaded.classes == ["a"]


def test_a_directory_does_not_choose_code(tmp_path, monkeypatch) -> None:
    """The name of a learner of your own comes from the person at the keyboard alone."""
    (tmp_path / "planted.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "directory"
    own = "verse.learners.VERSE"
    with opened(path, learner=own) as classifier:
        classifier.learn_feature(torch.ones(DIM), "a")
    monkeypatch.setattr(learners, "_trusted", {})  # as in another process
    with pytest.raises(BadState, match="name it again"):
        opened(path)
    with opened(path, learner=own) as classifier:
        assert classifier.classes == ["a"]
        saved = classifier.journal.meta("options")
        classifier.journal.set_meta("options", saved | {"learner": "planted.Learner"})
    with pytest.raises(BadState, match="name it again"):
        opened(path)


def test_a_checkpoint_elsewhere_is_no_checkpoint(tmp_path) -> None:
    path = tmp_path / "directory"
    with opened(path) as classifier:
        classifier.learn_feature(torch.ones(DIM), "a")
    with opened(path) as classifier:
        classifier.journal.database.write([("UPDATE checkpoints SET file='../secret'", ())])
        with pytest.raises(BadState, match="secret"):
            durable.backup(path, tmp_path / "backup.zip")
        abandon(classifier)
    with pytest.raises(BadState, match="secret"):
        opened(path)
