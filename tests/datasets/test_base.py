from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verse import datasets
from verse.datasets.base import Dataset, DataWarning, Frames, Source, places, unreadable
from verse.types import BadData, BadImage, BadSetting


class Numbered(Source):
    def read(self, i):
        if i == 3:
            raise BadImage("frame 3: not a readable image")
        return np.full((2, 2, 3), i, np.uint8)

    def key(self, i):
        return f"n{i}"


def frames(labels, videos, positions=None):
    positions = np.arange(len(labels)) if positions is None else positions
    return Frames(np.array(labels), np.array(videos), np.array(positions), Numbered())


def test_what_is_printed_says_how_much_there_is():
    train, test = frames([0, 0, 1], [0, 0, 1]), frames([0, 1], [2, 3])
    assert repr(train) == "<Frames: 3 in 2 videos>"
    made = repr(Dataset("cups", ("a", "b"), train, test))
    assert made == "<Dataset cups: 2 classes, 3 training and 2 test frames>"


def test_take_keeps_order_and_source_numbers():
    part = frames([0, 0, 1, 1], [0, 0, 1, 1]).take([2, 0]).take([1, 0])
    assert [part.key(i) for i in range(2)] == ["n0", "n2"]
    assert part.labels.tolist() == [0, 1]
    assert part.read(1).max() == 2


def test_take_accepts_a_mask_and_nothing():
    side = frames([0, 0, 1, 1], [0, 0, 1, 1])
    assert len(side.take(np.array([True, False, False, True]))) == 2
    assert len(side.take([])) == 0


def test_arrays_cannot_be_written_and_must_match():
    side = frames([0, 1], [0, 1])
    with pytest.raises(ValueError, match="read-only"):
        side.labels[0] = 1
    with pytest.raises(BadData, match="videos"):
        Frames(np.array([0, 1]), np.array([0]), np.array([0, 1]), Numbered())


def test_thin_every_and_keep():
    side = frames([0] * 30 + [1] * 4, [0] * 30 + [1] * 4, [*range(30), *range(4)])
    assert side.thin(every=10).frames.tolist() == [0, 10, 20, 0]
    kept = side.thin(keep=10)
    assert kept.frames.tolist() == [*range(0, 30, 3), 0, 1, 2, 3]
    assert side.thin() is side


@given(st.integers(1, 60), st.integers(1, 60))
def test_keep_keeps_exactly_that_many_spread(n, keep):
    kept = frames([0] * n, [0] * n).thin(keep=keep).frames
    assert len(kept) == min(n, keep)
    assert kept[0] == 0
    gaps = np.diff(kept)
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_thin_follows_time_not_storage():
    side = frames([0] * 4, [5] * 4, [3, 2, 1, 0])
    assert sorted(side.thin(every=2).frames.tolist()) == [0, 2]


def test_thin_refuses_nonsense():
    side = frames([0], [0])
    with pytest.raises(BadSetting):
        side.thin(every=0)
    with pytest.raises(BadSetting, match="not both"):
        side.thin(every=2, keep=2)


def test_places():
    place, length = places(frames([0] * 5, [7, 2, 7, 2, 7], [9, 1, 3, 0, 5]))
    assert place.tolist() == [2, 1, 0, 0, 1]
    assert length.tolist() == [3, 2, 3, 2, 3]


def test_check_names_untrained_and_empty_classes():
    train = frames([0, 0], [0, 0])
    with pytest.raises(BadData, match=r"never shows \(mug\)"):
        Dataset("d", ("cup", "mug"), train, frames([1], [1]))
    with pytest.raises(BadData, match="no frames for mug"):
        Dataset("d", ("cup", "mug"), train, frames([0], [1]))
    with pytest.raises(BadData, match="no training frames"):
        Dataset("d", ("cup",), train.take([]), frames([0], [1]))
    with pytest.raises(BadData, match="in training and in test"):
        Dataset("d", ("cup",), train, frames([0], [0]))
    with pytest.raises(BadData, match=r"0…0"):
        Dataset("d", ("cup",), frames([1], [0]), frames([0], [1]))
    with pytest.raises(BadData, match="same name"):
        Dataset("d", ("cup", "cup"), frames([0, 1], [0, 1]), frames([0], [2]))


def test_a_class_without_test_frames_is_a_warning():
    with pytest.warns(DataWarning, match="no test frames for mug"):
        Dataset("d", ("cup", "mug"), frames([0, 1], [0, 1]), frames([0], [2]))
    Dataset("d", ("cup", "mug"), frames([0, 1], [0, 1]), frames([], []))  # no test side at all


def test_unreadable_says_which_and_why():
    side = frames([0] * 5, [0] * 5)
    assert unreadable(side) == {3: "frame 3: not a readable image"}
    assert unreadable(side, [0, 1]) == {}


def test_fingerprint_sees_labels_order_and_content():
    a = Dataset("d", ("cup",), frames([0, 0], [0, 0]), frames([0], [1]))
    b = Dataset("other name", ("cup",), frames([0, 0], [0, 0]), frames([0], [1]))
    c = Dataset("d", ("cup",), frames([0, 0], [0, 0]).take([1, 0]), frames([0], [1]))
    assert a.fingerprint() == b.fingerprint() != c.fingerprint()
    assert a.fingerprint() != Dataset("d", ("mug",), a.train, a.test).fingerprint()


def test_frames_survive_pickling_for_decoding_workers():
    side = pickle.loads(pickle.dumps(frames([0, 1], [0, 1])))
    assert side.key(1) == "n1"


def test_names_and_descriptions():
    assert set(datasets.names()) >= {
        "tabletop",
        "folder",
        "joined",
        "icub1",
        "icub28",
        "core50",
        "core50-1fps",
        "imagenet100",
    }
    assert all(line and "\n" not in line for line in datasets.describe().values())


def test_unknown_names_suggest_the_nearest(tmp_path, monkeypatch):
    with pytest.raises(BadSetting, match="did you mean 'core50'"):
        datasets.load("cores50")
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    with pytest.raises(BadSetting, match="did you mean 'folder:photos'"):
        datasets.load("photos")
    with pytest.raises(BadSetting, match="cannot be imported"):
        datasets.load("no.such.module")


def test_options_are_checked_against_the_loader():
    with pytest.raises(BadSetting, match="no option 'speed'; it has: root, fps, rate, download"):
        datasets.load("core50", options={"speed": 3})
    with pytest.raises(BadSetting, match="takes no holdout"):
        datasets.load("core50", holdout="last:1")
    with pytest.raises(BadSetting, match="write folder:PATH"):
        datasets.load("folder")
    with pytest.raises(BadSetting, match="takes no path"):
        datasets.load("core50:somewhere")
    for options, expected in (
        ({"fps": "x"}, "fps must be a whole number, not 'x'"),
        ({"fps": 2.5}, "fps must be a whole number, not 2.5"),
        ({"download": "maybe"}, "download must be true or false, not 'maybe'"),
    ):
        with pytest.raises(BadSetting, match=expected):
            datasets.load("core50", options=options)


def test_a_loader_of_your_own_by_dotted_path(tmp_path, monkeypatch):
    (tmp_path / "mine_for_test.py").write_text(
        "from verse.datasets import Dataset, Frames, Source\n"
        "class One(Source):\n"
        "    def read(self, i): ...\n"
        "    def key(self, i): return str(i)\n"
        "def load(n=2):\n"
        "    return Dataset('mine', ('a',), Frames([0] * n, [0] * n, range(n), One()),"
        " Frames([0], [1], [0], One()))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert len(datasets.load("mine_for_test.load", options={"n": 6}, every=2).train) == 3
