"""Readers of published data sets, on tiny trees in their exact layout and naming."""

from __future__ import annotations

import hashlib
import shutil

import numpy as np
import pytest
from PIL import Image

from verse import datasets
from verse.datasets import core50, icub1, icub28, imagenet100
from verse.datasets.base import DataWarning, Frames, Source
from verse.datasets.official import Expect
from verse.types import BadData, BadSetting

from .trees import grow, image

# --- CoRe50 ---


@pytest.fixture(scope="module")
def core50_tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("core50")
    grow(
        root,
        (
            f"core50_128x128/s{s}/o{o}/C_{s:02d}_{o:02d}_{f:03d}.png"
            for s in (1, 2, 3, 10, 11)
            for o in (1, 5, 6, 50)
            for f in range(21)
        ),
    )
    return root


def test_core50_counts_are_the_official_ones():
    assert (core50.EXPECT.classes, core50.EXPECT.train, core50.EXPECT.test) == (10, 119_894, 44_972)
    assert (icub1.EXPECT.classes, icub1.EXPECT.train) == (10, 6_002)
    assert (icub28.EXPECT.classes, icub28.EXPECT.train) == (7, 20_363)
    assert (imagenet100.EXPECT.classes, imagenet100.EXPECT.train) == (100, 127_778)


def whole_core50(root, frames=1):
    return grow(
        root,
        (
            f"s{s}/o{o}/C_{s:02d}_{o:02d}_{f:03d}.png"
            for s in range(1, 12)
            for o in range(1, 51, 5)
            for f in range(frames)
        ),
    )


def test_core50_splits_by_session_and_labels_by_category(tmp_path):
    found = datasets.load(
        "core50", whole_core50(tmp_path), options={"expect": Expect(classes=10, train=80, test=30)}
    )
    assert found.classes[0] == "plug adapter"
    assert found.classes[2] == "scissor"
    assert found.classes[9] == "remote control"
    assert (len(found.train), len(found.test)) == (80, 30)
    held = {found.video_names[v].split("/")[0] for v in found.test.videos.tolist()}
    assert held == {"s3", "s7", "s10"}
    assert found.video_names[int(found.train.videos[0])] == "s1/o1"
    by_name = {found.train.name(i).split("|")[0]: int(y) for i, y in enumerate(found.train.labels)}
    assert by_name["s1/o1/C_01_01_000.png"] == 0
    assert by_name["s1/o46/C_01_46_000.png"] == 9
    assert by_name["s11/o21/C_11_21_000.png"] == 4


def test_core50_at_one_frame_a_second(tmp_path):
    root = whole_core50(tmp_path / "core50_128x128", frames=21).parent  # the archive's own folder
    expect = Expect(classes=10, train=80 * 21, test=30 * 21)
    slow = datasets.load("core50-1fps", root, options={"expect": expect})
    assert (len(slow.train), len(slow.test)) == (160, 60)
    assert set(slow.train.frames.tolist()) == {0, 20}
    half = datasets.load("core50", root, options={"expect": expect, "fps": 10})
    assert len(half.train) == 80 * 11
    with pytest.raises(BadSetting, match="fps"):
        datasets.load("core50", root, options={"fps": 3})


def test_core50_at_the_official_rate(tmp_path):
    """Every 20th frame of one list, in which object 46 comes before object 6."""
    root = whole_core50(tmp_path, frames=21)
    (root / "s3" / "o1" / "C_03_01_000.png").unlink()  # as in the real one: the tracker lost it
    small = {"expect": Expect(classes=10, train=80 * 21, test=30 * 21 - 1)}
    found = datasets.load("core50", root, options={**small, "rate": "official"})
    names = [found.test.name(i).split("|")[0] for i in range(len(found.test))]
    assert (len(found.train), len(found.test)) == (80 * 21, -(-(30 * 21 - 1) // 20))
    assert found.split == "sessions 3, 7, 10, every 20th frame of their list"
    things = sorted(f"o{o}" for o in range(1, 51, 5))
    listed = [
        f"s{s}/{o}/C_{s:02d}_{int(o[1:]):02d}_{f:03d}.png"
        for s in (3, 7, 10)
        for o in things
        for f in range(21)
    ][1:]
    assert sorted(names) == sorted(listed[::20])
    assert things[:3] == ["o1", "o11", "o16"]
    slow = datasets.load("core50-1fps", root, options={**small, "rate": "official"})
    assert len(slow.test) == len(found.test) and len(slow.train) == 160
    with pytest.raises(BadSetting, match="rate is video or official, not 'fast'"):
        datasets.load("core50", root, options={"rate": "fast"})


def test_core50_at_the_official_rate_has_its_published_length():
    """300 frames a video but for 28 lost ones: 44,972 frames, of which 2,249 are listed."""

    class Named(Source):
        def read(self, i):
            raise NotImplementedError

        def key(self, i):
            video, frame = divmod(i + 1, 300)
            session, thing = (3, 7, 10)[video // 50], video % 50 + 1
            return f"s{session}/o{thing}/C_{session:02d}_{thing:02d}_{frame:03d}.png|9"

    n = core50.EXPECT.test
    chosen = core50.select_reduced(Frames(np.zeros(n), np.zeros(n), np.zeros(n), Named()))
    assert len(chosen) == 2_249
    assert Named().key(chosen[0]) == "s3/o1/C_03_01_001.png|9"


def test_core50_wrong_copies(tmp_path, core50_tree):
    with pytest.raises(BadData, match=r"3 classes .* not 10 and 252 training images, not 119,894"):
        datasets.load("core50", core50_tree)
    thinned = whole_core50(tmp_path / "thin")
    with pytest.raises(BadData, match="thinned copy"):
        datasets.load("core50", thinned)
    image(thinned / "s1" / "o1" / "D_01_01_000.png")
    with pytest.raises(BadData, match=r"C_01_01_000\.png and so on"):
        datasets.load("core50", thinned)
    image(tmp_path / "b" / "s1" / "o1" / "C_01_01_000.png")
    image(tmp_path / "b" / "s1" / "o51" / "C_01_51_000.png")
    with pytest.raises(BadData, match="o1 … o50"):
        datasets.load("core50", tmp_path / "b")


def test_absent_copies_say_what_to_get_and_where(tmp_path):
    for name, words in (
        ("core50", "core50_128x128.zip"),
        ("icub28", "iCubWorld28_128x128.zip"),
        ("icub1", "icub.org/download/datasets/iCubWorld.zip"),
        ("imagenet100", "ILSVRC2012_img_train.tar"),
    ):
        with pytest.raises(BadData, match=words) as error:
            datasets.load(name, tmp_path / "nowhere")
        assert str(tmp_path / "nowhere") in str(error.value)
        assert "no such folder" in str(error.value)
    (tmp_path / "there" / "something").mkdir(parents=True)
    with pytest.raises(BadData, match="found something/"):
        datasets.load("core50", tmp_path / "there")


def test_data_is_looked_for_in_the_named_home(tmp_path, monkeypatch):
    monkeypatch.setenv("VERSE_DATA", str(tmp_path))
    with pytest.raises(BadData, match=str(tmp_path / "core50")):
        datasets.load("core50")
    whole_core50(tmp_path / "core50")
    expect = Expect(classes=10, train=80, test=30)
    assert len(datasets.load("core50", options={"expect": expect}).train) == 80


# --- iCubWorld28 ---

KINDS = ("cup", "dishwashing-detergent", "laundry-detergent", "plate", "soap", "sponge", "sprayer")


def icub28_tree(root, days=(1, 2, 3, 4)):
    names = [f"day{d}" for d in days] + ["day4_manual_crop"]
    return grow(
        root,
        (
            f"{side}/{day}/{kind}/{kind}{k}/{frame:08d}.ppm"
            for side in ("train", "test")
            for day in names
            for kind in KINDS
            for k in (1, 2)
            for frame in (4192, 4193)
        ),
    )


def test_icub28_days_and_categories(tmp_path):
    root = icub28_tree(tmp_path / "iCubWorld28_128x128").parent
    (root / "__MACOSX").mkdir()
    found = datasets.load("icub28", root, options={"expect": Expect(classes=7, train=112)})
    assert found.classes == KINDS
    assert (len(found.train), len(found.test)) == (112, 112)
    assert len(set(found.train.videos.tolist())) == 4 * 14
    assert found.video_names[0] == "train/day1/cup1"
    assert found.train.name(0).startswith("train/day1/cup/cup1/00004192.ppm")  # runs on in a day
    assert not any("manual" in name for name in found.video_names.values())


def test_icub28_wrong_copies(tmp_path):
    with pytest.raises(BadData, match=r"112 training images, not 20,363. It looks like one day"):
        datasets.load("icub28", icub28_tree(tmp_path / "few"))
    flat = grow(
        tmp_path / "flat",
        [f"train/day1/{k}{i}/{k}{i}/0.ppm" for k in KINDS for i in range(1, 5)]
        + ["test/day1/cup1/cup1/0.ppm"],
    )
    with pytest.raises(BadData, match=r"28 classes .*classes are the 28 objects"):
        datasets.load("icub28", flat)


# --- iCubWorld 1.0 ---

TEN = tuple(f"kind{k}" for k in range(10))


@pytest.fixture
def icub1_tree(tmp_path):
    root = tmp_path / "iCubWorld1.0"
    grow(root, (f"train/{c}/{c}_{k}/{f:05d}.jpg" for c in TEN for k in (1, 2, 3) for f in range(2)))
    grow(root, (f"test/categorization/{c}/{c}_4/{f:05d}.jpg" for c in TEN for f in range(2)))
    grow(root, (f"test/robot/{c}/{f:05d}.jpg" for c in TEN[:4] for f in range(3)))
    return tmp_path


def test_icub1_conditions(icub1_tree):
    small = {"expect": Expect(classes=10, train=60)}
    found = datasets.load("icub1", icub1_tree, options=small)
    assert (len(found.classes), len(found.train), len(found.test)) == (10, 60, 20)
    assert found.video_names[0] == "train/kind0/kind0_1"
    assert found.split == "train/ and test/categorization/"
    with pytest.warns(DataWarning, match="no test frames for kind4"):
        robot = datasets.load("icub1", icub1_tree, options={**small, "test": "robot"})
    assert len(robot.test) == 12
    with pytest.raises(BadSetting, match="not 'Robot7'"):
        datasets.load("icub1", icub1_tree, options={"test": "Robot7"})
    with pytest.raises(BadData, match="has no background/ but categorization, robot"):
        datasets.load("icub1", icub1_tree, options={"test": "background"})


def test_icub1_masks_are_no_frames(icub1_tree):
    """Ten images a category, masks beside them: by name, in a folder, or by what they show."""
    place = icub1_tree / "iCubWorld1.0" / "test" / "background"
    for c in TEN:
        for k in range(10):
            image(place / c / f"{k:08d}.jpg", 100 + k)
            image(place / c / f"{k:08d}_mask.png", 255)
            image(place / c / "masks" / f"{k:08d}.png", 255)
        half = np.zeros((20, 20, 3), np.uint8)
        half[5:12, 5:12] = 255
        Image.fromarray(half).save(place / c / "90000000.ppm")
    small = {"expect": Expect(classes=10, train=60), "test": "background"}
    found = datasets.load("icub1", icub1_tree, options=small)
    assert len(found.test) == 100
    assert np.bincount(found.test.labels).tolist() == [10] * 10


def test_icub1_robot_shows_known_and_new_objects(icub1_tree):
    root = icub1_tree / "iCubWorld1.0"
    shutil.rmtree(root / "test" / "robot")
    grow(root, (f"test/robot/known/{c}/{c}_1/{f:05d}.jpg" for c in TEN[:5] for f in range(2)))
    grow(root, (f"test/robot/new/{c}/{f:05d}.jpg" for c in TEN[5:] for f in range(3)))
    small = {"expect": Expect(classes=10, train=60), "test": "robot"}
    found = datasets.load("icub1", icub1_tree, options=small)
    assert len(found.test) == 25
    assert {name.split("/")[0] for v, name in found.video_names.items() if v >= 30} == {
        "known",
        "new",
    }


def test_icub1_wrong_copies(icub1_tree, tmp_path):
    with pytest.raises(BadData, match=r"60 training images, not 6,002. Get iCubWorld 1.0"):
        datasets.load("icub1", icub1_tree)
    seven = ("bottle", "box", "octopus", "phone", "pouch", "spray", "turtle")
    hello = grow(
        tmp_path / "hello",
        [
            f"{who}/{side}/{c}/00001500.jpg"
            for c in seven
            for who in ("human", "robot")
            for side in ("train", "test")
        ],
    )
    with pytest.raises(BadData, match=r"7 classes. It looks like 'Hello iCubWorld'"):
        datasets.load("icub1", hello)
    moved = grow(
        tmp_path / "moved",
        [f"train/{c}/0.jpg" for c in seven] + [f"test/categorization/{c}/0.jpg" for c in seven],
    )
    with pytest.raises(BadData, match=r"7 classes .*Hello iCubWorld"):
        datasets.load("icub1", moved)
    grow(icub1_tree / "iCubWorld1.0", ["test/categorization/other/0.jpg"])
    with pytest.raises(BadData, match="tested but never trained"):
        datasets.load("icub1", icub1_tree)


# --- ImageNet100 ---

WNIDS = ("n01440764", "n01443537", "n01484850")


def imagenet_tree(root, flat):
    grow(root, (f"train/{w}/{w}_{k}.JPEG" for w in WNIDS for k in range(3)))
    if flat:
        grow(root, (f"val/ILSVRC2012_val_{k:08d}.JPEG" for k in range(1, 7)))
    else:
        grow(
            root,
            (
                f"val/{w}/ILSVRC2012_val_{2 * y + k:08d}.JPEG"
                for y, w in enumerate(WNIDS)
                for k in (1, 2)
            ),
        )
    return root


TINY = Expect(classes=2, train=6, test=4)


def write_list(path):
    path.write_text("# two of them\nn01484850 great white shark\nn01440764\n")
    return path


def load_imagenet(root, tmp_path):
    return datasets.load(
        "imagenet100",
        root,
        options={"classes": write_list(tmp_path / "classes.txt"), "expect": TINY},
    )


def test_imagenet_with_folders_and_a_list(tmp_path):
    found = load_imagenet(imagenet_tree(tmp_path / "in", flat=False), tmp_path)
    assert found.classes == ("n01440764", "n01484850")
    assert (len(found.train), len(found.test)) == (6, 4)
    assert len(set(found.train.videos.tolist())) == 6  # every image stands alone
    assert "classes " in found.split


def kaggle(root):
    rows = "".join(f"ILSVRC2012_val_{k:08d},{WNIDS[k % 3]} 1 2 3 4 \n" for k in range(1, 7))
    (root / "LOC_val_solution.csv").write_text("ImageId,PredictionString\n" + rows)


def synsets(root):
    (root / "imagenet_2012_validation_synset_labels.txt").write_text(
        "\n".join(WNIDS[k % 3] for k in range(1, 7))
    )


def devkit(root):
    savemat = pytest.importorskip("scipy.io", reason="the kit's MATLAB file needs scipy").savemat
    data = root / "ILSVRC2012_devkit_t12" / "data"
    data.mkdir(parents=True)
    table = np.zeros(3, dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O")])
    for row, (number, wnid) in enumerate(zip((2, 3, 1), WNIDS, strict=True)):
        table[row] = (number, wnid)
    savemat(data / "meta.mat", {"synsets": table})
    numbers = {WNIDS[0]: 2, WNIDS[1]: 3, WNIDS[2]: 1}
    (data / "ILSVRC2012_validation_ground_truth.txt").write_text(
        "\n".join(str(numbers[WNIDS[k % 3]]) for k in range(1, 7))
    )


@pytest.mark.parametrize("labels", [kaggle, synsets, devkit])
def test_imagenet_with_the_flat_validation_folder(tmp_path, labels):
    root = imagenet_tree(tmp_path / "in", flat=True)
    with pytest.raises(BadData, match="is flat, so its labels are needed"):
        load_imagenet(root, tmp_path)
    labels(root)
    found = load_imagenet(root, tmp_path)
    truth = {
        found.test.name(i).split("|")[0][-13:-5]: found.classes[y]
        for i, y in enumerate(found.test.labels)
    }
    assert truth == {
        "00000002": WNIDS[2],
        "00000003": WNIDS[0],
        "00000005": WNIDS[2],
        "00000006": WNIDS[0],
    }


def test_imagenet_wrong_copies(tmp_path):
    root = imagenet_tree(tmp_path / "in", flat=False)
    with pytest.raises(BadData, match="has 3 classes; it needs the 1,000"):
        datasets.load("imagenet100", root)
    (tmp_path / "l.txt").write_text("n99999999\n")
    with pytest.raises(BadData, match="not in the training folder: n99999999"):
        datasets.load("imagenet100", root, options={"classes": tmp_path / "l.txt"})
    with pytest.raises(BadData, match="cannot be read"):
        datasets.load("imagenet100", root, options={"classes": tmp_path / "none.txt"})


def test_imagenet_counts_of_a_hundred(tmp_path, monkeypatch):
    wnids = [f"n{k:08d}" for k in range(100)]
    grow(tmp_path, [f"train/{w}/{k}.JPEG" for w in wnids for k in (0, 1)])
    grow(tmp_path, [f"val/{w}/{w}.JPEG" for w in wnids])
    with pytest.raises(BadData, match="100 test images, not 5,000"):
        datasets.load("imagenet100", tmp_path)
    monkeypatch.setattr(imagenet100, "EXPECT", Expect(100, 127_778, 100))
    with pytest.raises(BadData, match="n00000000 has 2 training images"):
        datasets.load("imagenet100", tmp_path)
    monkeypatch.setattr(imagenet100, "FEWEST", 1)
    with pytest.warns(DataWarning, match=r"200 training images; the paper's list .* 127,778"):
        assert len(datasets.load("imagenet100", tmp_path).classes) == 100


def test_the_list_of_classes_is_pinned():
    present = [f"n{k:08d}" for k in range(1000)]
    chosen = imagenet100.pick(present, seed=0)
    assert len(set(chosen)) == 100
    assert chosen[:5] == ["n00000002", "n00000003", "n00000011", "n00000013", "n00000020"]
    digest = hashlib.sha256("\n".join(chosen).encode()).hexdigest()
    assert digest.startswith("a6195ff9c7635b2b")
    assert imagenet100.pick(present, seed=1) != chosen
