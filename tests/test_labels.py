"""What may be a label, the numbers that learners know them by, and old folders with others."""

from __future__ import annotations

import itertools
import shutil

import numpy as np
import pytest
import torch

import verse
from tests.serve.old_folders import any_label, teach_anyway
from verse import StreamClassifier, backbones
from verse.ahead import pair_up
from verse.labels import Labels, check_label
from verse.types import BadData, BadLabel


@pytest.mark.parametrize(
    "label", ["mug", "Tasse à café", "杯", "👩\u200d🚀", "क्ष", "+", "7", 7, "a b"]
)
def test_what_can_be_seen_is_a_label(label) -> None:
    assert check_label(label) == label


def test_labels_of_numpy_become_those_of_python() -> None:
    assert type(check_label(np.str_("mug"))) is str and type(check_label(np.int64(3))) is int


INVISIBLE = ["\u200d", "\u3164", "\u115f", "\u2800", "\u034f", "\ufe0f", "\u00ad", "\u3164 \u2800"]


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("", "empty"),
        (" \t ", "empty"),
        *((label, "can be seen") for label in INVISIBLE),
        ("a\u2028b", "separators"),
        ("a\u2029b", "separators"),
        ("caf\udce9", "UTF-8"),  # how Python reads a folder's name that is not UTF-8
        (True, "not bool"),
        (1.5, "not float"),
        (None, "not NoneType"),
    ],
)
def test_what_cannot_be_seen_or_written_is_refused(label, says) -> None:
    with pytest.raises(BadLabel, match=says) as refused:
        check_label(label)
    str(refused.value).encode()  # the message itself is text


def test_an_old_folder_with_such_labels_opens_and_can_be_mended(tmp_path) -> None:
    backbone = verse.backbones.identity((3,))
    with verse.open(tmp_path / "old", backbone=backbone, learner="slda") as classifier:
        for i, label in enumerate(["caf\udce9", "\u3164", "mug"]):
            teach_anyway(classifier, torch.eye(3)[i], label)
        with any_label():
            classifier.rename("mug", "\u2800")
        shutil.copytree(tmp_path / "old", tmp_path / "killed")  # replayed, no checkpoint
    for folder in ("old", "killed"):
        with verse.open(tmp_path / folder, backbone=backbone) as again:
            assert again.classes == ["caf\udce9", "\u3164", "\u2800"]
            again.rename("caf\udce9", "café")
            again.forget("\u3164")
            again.merge("\u2800", "café")
            assert again.classes == ["café"]
            with pytest.raises(BadLabel):
                again.rename("café", "\u3164")


def test_the_number_of_a_class_is_the_learners_output() -> None:
    classifier = StreamClassifier(backbone=backbones.identity((3,)))
    for t, label in enumerate(["a", "b", "a", "c"]):
        classifier.learn_one(np.eye(3)[t % 3], label)
    classifier.forget("a")
    classifier.rename("c", "C")
    classifier.learn_one(np.ones(3), "a")  # comes back as a new class
    assert classifier.labels.known == [("b", 0), ("C", 1), ("a", 2)]
    assert classifier.learner.labels == [0, 1, 2]
    assert classifier.labels.names == ("b", "C", "a")
    assert classifier.memory_counts() == {"b": 1, "C": 1, "a": 1}


def test_renaming_keeps_the_place() -> None:
    labels = Labels()
    for name in ("a", "b", "c"):
        labels.add(name)
    labels.rename("a", "z")
    assert list(labels) == ["z", "b", "c"] and labels.number("z") == 0
    with pytest.raises(BadLabel, match="merge them instead"):
        labels.rename("b", "c")
    with pytest.raises(BadLabel, match=r"there is no class 'a'; there are \['z', 'b', 'c'\]"):
        labels.number("a")


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(
    "labels",
    [["a"], ["a"] * 3, iter(["a"]), iter(["a"] * 3), itertools.repeat("a"), np.array([1, 2, 3])],
    ids=["fewer", "more", "iterator", "longer iterator", "endless", "array"],
)
def test_unequal_lengths_learn_nothing(labels, overlap) -> None:
    classifier = StreamClassifier(backbone=backbones.identity((3,)))
    with pytest.raises(BadData, match="nothing was learned"):
        classifier.learn_many(np.eye(3)[:2], labels, overlap=overlap)
    assert classifier.samples == 0 and classifier.classes == []


def test_a_string_is_not_taken_apart() -> None:
    classifier = StreamClassifier(backbone=backbones.identity((3,)))
    with pytest.raises(BadData, match="labels are several, not one str: nothing was learned"):
        classifier.learn_many(np.eye(3), "cup")
    with pytest.raises(BadData, match="images are several"):
        classifier.learn_many("mug.png", ["a"] * 7)
    with pytest.raises(BadData, match="use predict_one"):
        classifier.predict_many("mug.png")
    assert classifier.samples == 0


def test_an_iterator_of_images_tells_at_its_end() -> None:
    with pytest.raises(BadData, match="only 2 images; these pairs are learned"):
        list(pair_up(iter(torch.eye(2)), ["a", "b", "c"]))
    with pytest.raises(BadData, match="only 1 labels"):
        list(pair_up(iter(torch.eye(2)), ["a"]))
    assert len(list(pair_up(iter(torch.eye(2)), ["a", "b"]))) == 2
