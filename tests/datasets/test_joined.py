"""Several folders in one stream."""

from __future__ import annotations

import numpy as np
import pytest

from tests.datasets.trees import videos
from verse import datasets
from verse.types import BadSetting

PARTS = "cups last:1 + signs fraction:0.5"


@pytest.fixture
def root(tmp_path):
    videos(tmp_path / "cups", {"a": {"v1": 2, "v2": 3}, "b": {"v1": 2, "v2": 1}})
    videos(tmp_path / "signs", {"a": {"v1": 4}, "stop": {"v1": 2}, "yield": {"v1": 6}})
    return tmp_path


def test_classes_and_videos_keep_apart(root):
    both = datasets.load("joined", root, options={"parts": PARTS})
    cups = datasets.load("folder:cups", root, "last:1")
    signs = datasets.load("folder:signs", root, "fraction:0.5")
    assert both.classes == ("cups/a", "cups/b", "signs/a", "signs/stop", "signs/yield")
    assert both.name == "cups+signs"
    for joined, parts in (
        (both.train, (cups.train, signs.train)),
        (both.test, (cups.test, signs.test)),
    ):
        assert len(joined) == sum(map(len, parts))
        keys = [part.key(i) for part in parts for i in range(len(part))]
        assert [joined.key(i) for i in range(len(joined))] == keys  # features are found again
        last = len(joined) - 1
        assert np.array_equal(joined.read(last), parts[1].read(len(parts[1]) - 1))
        assert joined.labels.tolist() == [*parts[0].labels, *(parts[1].labels + 2)]
    of = {int(v): int(y) for v, y in zip(both.train.videos, both.train.labels, strict=True)}
    assert len(of) == len(np.unique(cups.train.videos)) + len(np.unique(signs.train.videos))
    assert not np.intersect1d(both.train.videos, both.test.videos).size


def test_the_names_of_videos_follow(root):
    both = datasets.load("joined", root, options={"parts": PARTS})
    used = np.unique(np.concatenate([both.train.videos, both.test.videos])).tolist()
    named = [both.video_names[video] for video in used]  # every video has one
    assert {name.partition("/")[0] for name in named} == {"cups", "signs"}


@pytest.mark.parametrize("parts", ["", "cups last:1", "cups + cups", "cups last:1 more + signs"])
def test_what_cannot_be_joined(root, parts):
    with pytest.raises(BadSetting, match="each a data set and its split rule"):
        datasets.load("joined", root, options={"parts": parts})
