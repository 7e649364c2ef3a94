from __future__ import annotations

import json
import os
import re
import shutil

import numpy as np
import pytest

from verse import datasets
from verse.datasets.base import DataWarning, unreadable
from verse.datasets.files import natural
from verse.types import BadData, BadImage, BadSetting

from .trees import grow, image, videos


def names(dataset, side):
    return sorted({dataset.video_names[v] for v in side.videos.tolist()})


def load(root, holdout=None, **more):
    return datasets.load(f"folder:{root}", holdout=holdout, **more)


@pytest.fixture
def tree(tmp_path):
    return videos(
        tmp_path / "set", {"cup": {"v1": 4, "v2": 4, "v10": 4}, "mug": {"v1": 4, "v2": 4, "v3": 4}}
    )


# --- the real sets, with the counts and splits their README gives ---


@pytest.mark.parametrize(
    ("name", "holdout", "classes", "train", "test", "rule", "inner_train", "inner_test"),
    [
        ("eth80", "last:3", 8, 2296, 984, "last:2", 1640, 656),
        ("gtsrb", "last:3", 43, 8460, 3870, "last:1", 7170, 1290),
        ("icub_camera", "arcs:6:3,6", 49, 2352, 1225, "last:1", 1764, 588),
    ],
)
def test_real_sets(real_data, name, holdout, classes, train, test, rule, inner_train, inner_test):
    found = load(real_data(name), holdout)
    assert (len(found.classes), len(found.train), len(found.test)) == (classes, train, test)
    inner = datasets.validation(found, rule)
    assert (len(inner.train), len(inner.test)) == (inner_train, inner_test)
    ours = {found.train.key(i) for i in range(train)}
    tuned = {side.key(i) for side in (inner.train, inner.test) for i in range(len(side))}
    assert tuned == ours
    assert found.train.read(0).dtype == np.uint8


def test_icub_camera_arcs_exactly(real_data):
    found = load(real_data("icub_camera"), "arcs:6:3,6")
    lengths = np.bincount(np.concatenate([found.train.videos, found.test.videos]))
    assert lengths.reshape(49, 6).tolist() == [[12, 12, 12, 12, 12, 13]] * 49
    assert names(found, found.test)[:2] == ["object001 arc 3", "object001 arc 6"]
    inner = datasets.validation(found, "last:1")
    assert {name[-5:] for name in names(inner, inner.test)} == {"arc 5"}
    first = found.test.name(0)
    assert first.startswith("object001/024.jpg")


def test_eth80_holds_out_the_last_objects(real_data):
    found = load(real_data("eth80"), "last:3")
    assert names(found, found.test)[:3] == ["apple08", "apple09", "apple10"]
    inner = datasets.validation(found, "last:2")
    assert names(inner, inner.test)[:2] == ["apple06", "apple07"]


# --- layouts ---


def test_natural_order_of_videos_and_frames(tmp_path):
    root = videos(tmp_path, {"a": {"v10": 12, "v2": 1, "v1": 1}})
    found = load(root, "last:1")
    assert names(found, found.test) == ["v10"]
    assert [found.test.name(i).split("|")[0] for i in (1, 2, 10)] == [
        "a/v10/1.png",
        "a/v10/2.png",
        "a/v10/10.png",
    ]
    assert sorted(["f10", "F2", "f01", "f1"], key=natural) == ["f01", "f1", "F2", "f10"]


def test_classes_of_plain_frames_and_of_videos_side_by_side(tmp_path):
    grow(tmp_path, [f"cup/{k}.jpg" for k in range(10)])
    videos(tmp_path, {"mug": {"x": 10, "y": 10}})
    found = load(tmp_path)
    assert found.split == "fraction:0.2"  # one class has a single video
    assert (len(found.train), len(found.test)) == (24, 6)


def test_default_split_is_the_last_video(tree):
    found = load(tree)
    assert found.split == "last:1"
    assert names(found, found.test) == ["v10", "v3"]


def test_ready_train_and_test_folders(tmp_path):
    videos(tmp_path / "train", {"cup": {"a": 3}, "mug": {"a": 3}})
    videos(tmp_path / "test", {"mug": {"a": 2}, "cup": {"b": 2}})
    found = load(tmp_path)
    assert found.classes == ("cup", "mug")
    assert (len(found.train), found.test.labels.tolist()) == (6, [0, 0, 1, 1])
    with pytest.raises(BadSetting, match="takes no --holdout"):
        load(tmp_path, "last:1")
    videos(tmp_path / "test", {"jug": {"a": 2}})
    with pytest.raises(BadData, match=r"never shows \(jug\)"):
        load(tmp_path)


def test_hidden_and_foreign_files_are_ignored(tree):
    for path in (
        ".DS_Store",
        "cup/.DS_Store",
        "cup/v1/.hidden.png",
        "cup/v1/Thumbs.db",
        "notes.txt",
    ):
        (tree / path).write_bytes(b"x")
    (tree / ".git").mkdir()
    (tree / "__MACOSX").mkdir()
    assert len(load(tree).train) + len(load(tree).test) == 24


def test_mixed_layout_in_one_class(tree):
    image(tree / "cup" / "stray.png")
    with pytest.raises(BadData, match=r"'cup' mixes layouts: frames such as stray.png .* v1/"):
        load(tree)


def test_empty_class_empty_video_and_too_deep(tree):
    (tree / "jug").mkdir()
    with pytest.raises(BadData, match="class 'jug' has no images"):
        load(tree)
    (tree / "jug" / "readme.txt").write_text("x")
    with pytest.raises(BadData, match=r"only .txt"):
        load(tree)
    shutil.rmtree(tree / "jug")
    (tree / "cup" / "v3").mkdir()
    with pytest.raises(BadData, match=r"video folder .*v3 has no images"):
        load(tree)
    image(tree / "cup" / "v3" / "deeper" / "0.png")
    with pytest.raises(BadData, match="one level too deep"):
        load(tree)


def test_missing_folder_file_and_no_classes(tmp_path):
    with pytest.raises(BadData, match="there is no folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(BadData, match="is a file"):
        load(image(tmp_path / "flat" / "0.png"))
    with pytest.raises(BadData, match="images but no folders"):
        load(tmp_path / "flat")
    (tmp_path / "void").mkdir()
    with pytest.raises(BadData, match=f"^{re.escape(str(tmp_path))}/void holds nothing"):
        load(os.path.relpath(tmp_path / "void"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(tree):
    (tree / "cup").chmod(0)
    try:
        with pytest.raises(BadData, match="permissions"):
            load(tree)
    finally:
        (tree / "cup").chmod(0o755)


def test_unreadable_images_are_told_apart(tree):
    (tree / "cup" / "v1" / "0.png").write_bytes(b"")
    (tree / "cup" / "v1" / "1.png").write_bytes(b"this is no image")
    whole = (tree / "cup" / "v1" / "2.png").read_bytes()
    (tree / "cup" / "v1" / "2.png").write_bytes(whole[: len(whole) - 20])
    found = load(tree)
    (tree / "cup" / "v1" / "3.png").unlink()
    reasons = unreadable(found.train)
    assert list(reasons) == [0, 1, 2, 3]
    assert "is empty" in reasons[0]
    assert "1.png" in reasons[1]
    assert "2.png" in reasons[2]
    assert "no such file" in reasons[3]
    with pytest.raises(BadImage):
        found.train.read(0)
    assert found.train.key(3).endswith("gone")


def test_grey_palette_and_alpha_become_rgb(tmp_path):
    from PIL import Image

    for k, mode in enumerate(("L", "P", "RGBA", "LA", "1", "CMYK")):
        path = tmp_path / "a" / f"{k}.{'tif' if mode == 'CMYK' else 'png'}"
        path.parent.mkdir(exist_ok=True)
        Image.new(mode, (5, 3)).save(path)
    found = load(tmp_path, "none")
    assert {found.train.read(i).shape for i in range(6)} == {(3, 5, 3)}


def test_keys_follow_content_and_fingerprint_follows_the_copy(tree, tmp_path):
    first = load(tree)
    shutil.copytree(tree, tmp_path / "elsewhere" / "set")
    second = load(tmp_path / "elsewhere" / "set")
    assert first.fingerprint() == second.fingerprint()
    assert first.train.key(0) != second.train.key(0)
    key, fingerprint = first.train.key(0), first.fingerprint()
    (tree / "cup" / "v1" / "0.png").write_bytes(b"something else")
    assert load(tree).train.key(0) != key
    assert load(tree).fingerprint() != fingerprint


# --- split rules ---


def test_last_needs_a_video_to_train_on(tree):
    with pytest.raises(BadData, match="'cup' has 3 videos, so holding out 3 leaves none"):
        load(tree, "last:3")


def test_a_share_of_the_videos_is_rounded_up(tree):
    found = load(tree, "last:50%")  # of three each
    held = [len(np.unique(found.test.videos[found.test.labels == y])) for y in range(2)]
    assert held == [2, 2]
    with pytest.raises(BadSetting, match="last:25%"):
        load(tree, "last:a%")


def test_named_videos(tree):
    found = load(tree, "videos:v2")
    assert names(found, found.test) == ["v2"]
    assert len(found.test) == 8
    assert len(load(tree, "videos:cup/v1,mug/v*2").test) == 8
    with pytest.raises(BadSetting, match="no video is called 'v4'"):
        load(tree, "videos:v4")
    with pytest.raises(BadSetting, match="name the videos"):
        load(tree, "videos:")
    with pytest.warns(DataWarning, match="no test frames for mug"):
        load(tree, "videos:v10")


def test_arcs_and_fraction_cut_videos_apart(tree):
    found = load(tree, "arcs:2:2")
    assert (len(found.train), len(found.test)) == (12, 12)
    assert set(found.train.frames.tolist()) == {0, 1}
    assert found.video_names[0] == "v1 arc 1"
    found = load(tree, "fraction:0.25")
    assert (len(found.train), len(found.test)) == (18, 6)
    assert found.video_names[1] == "v1 part 2"
    assert not set(found.train.videos.tolist()) & set(found.test.videos.tolist())
    with pytest.raises(BadData, match="too few for 5 arcs"):
        load(tree, "arcs:5:1")


@pytest.mark.parametrize(
    "rule",
    [
        "arcs:6",
        "arcs:2:3",
        "arcs:2:1,2",
        "arcs:x:1",
        "last:0",
        "last:",
        "last:-1",
        "fraction:1",
        "fraction:x",
        "none:1",
    ],
)
def test_rules_with_wrong_numbers(tree, rule):
    with pytest.raises(BadSetting):
        load(tree, rule)


def test_unknown_rule_names_the_valid_ones(tree):
    with pytest.raises(
        BadSetting, match=r"did you mean 'last'\? Valid rules: last:N, last:P%, videos:"
    ):
        load(tree, "lst:3")


def test_none_holds_out_nothing(tree):
    assert len(load(tree, "none").test) == 0


def test_split_files(tree, tmp_path):
    path = tmp_path / "split.json"
    path.write_text(json.dumps({"test": ["cup/v2", "mug/v3/0.png", "mug/v3/1.png"]}))
    found = load(tree, f"file:{path}")
    assert (len(found.train), len(found.test)) == (18, 6)
    table = tmp_path / "split.csv"
    table.write_text("path,split\ncup,train\ncup/v2,test\nmug,train\nmug/v1,skip\nmug/v3,test\n")
    found = load(tree, f"file:{table}")
    assert (len(found.train), len(found.test)) == (12, 8)
    table.write_text("path,split\ncup,train\nmug/v1,test\n")
    with pytest.raises(BadData, match=r"says nothing about mug/v2/0\.png"):
        load(tree, f"file:{table}")
    path.write_text(json.dumps({"test": ["cup/v9"]}))
    with pytest.raises(BadData, match="not in the data set: cup/v9"):
        load(tree, f"file:{path}")
    path.write_text(json.dumps({"tset": ["cup/v1"]}))
    with pytest.raises(BadSetting, match="not tset"):
        load(tree, f"file:{path}")
    path.write_text("[")
    with pytest.raises(BadSetting, match="is not JSON"):
        load(tree, f"file:{path}")
    with pytest.raises(BadSetting, match="cannot be read"):
        load(tree, "file:nowhere.csv")


def test_every_keep_validate_and_root(tree):
    assert len(load(tree, every=2).train) == 8
    assert len(load(tree, keep=3).train) == 12
    inner = load(tree, "last:1", validate="last:1")
    assert (len(inner.train), len(inner.test)) == (8, 8)
    assert inner.split == "last:1 / validation last:1"
    assert len(datasets.load("folder:set", root=tree.parent).classes) == 2


def test_under_verse_data_unless_it_holds_classes_here(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("VERSE_DATA", str(tree.parent))
    here = tmp_path / "here"
    (here / "set" / "set").mkdir(parents=True)
    monkeypatch.chdir(here)
    (here / "set" / "set" / "verse.jsonl").touch()  # results of runs on it
    assert datasets.load("folder:set").classes == ("cup", "mug")
    videos(here / "set", {"pen": {"v1": 2, "v2": 2}, "pin": {"v1": 2, "v2": 2}})
    (here / "set" / "set" / "verse.jsonl").unlink()
    (here / "set" / "set").rmdir()
    assert datasets.load("folder:set").classes == ("pen", "pin")
