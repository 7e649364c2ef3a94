"""tabletop: deterministic, coherent in time, split by instance and session, safe on disk."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from verse import datasets
from verse.datasets import tabletop
from verse.datasets.base import Dataset, DataWarning
from verse.datasets.tabletop.objects import CATEGORIES
from verse.datasets.tabletop.paint import PATTERNS, Variety, pattern
from verse.datasets.tabletop.render import VideoRenderer
from verse.datasets.tabletop.scene import FilmingSession, TabletopVideo
from verse.types import BadSetting

SMALL = {"frames": 2, "sessions": 2, "instances": 2, "size": 24}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tabletop.load(cache=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path))
    return tmp_path / "tabletop"


def parts(data: Dataset, side: str) -> set[tuple[str, str, str]]:
    """(category, instance, session) of each video of a side."""
    names = {data.video_names[int(v)] for v in getattr(data, side).videos}
    out = set()
    for name in names:
        category, rest = name.split("/")
        instance, session = rest.split("-session")
        out.add((category, instance, session))
    return out


def test_default_counts(data: Dataset) -> None:
    assert len(data.classes) == 12 == len(CATEGORIES)
    assert (len(data.train), len(data.test)) == (2304, 768)
    for side, videos in ((data.train, 12), (data.test, 4)):
        for c in range(12):
            assert len(np.unique(side.videos[side.labels == c])) == videos
        for v in np.unique(side.videos):
            assert side.frames[side.videos == v].tolist() == list(range(16))


def test_test_instances_and_sessions_are_never_trained(data: Dataset) -> None:
    train, test = parts(data, "train"), parts(data, "test")
    assert not {p[:2] for p in train} & {p[:2] for p in test}
    assert not {p[2] for p in train} & {p[2] for p in test}
    assert len({p[:2] for p in train | test}) == 12 * 6


PINNED = {  # mean grey of 4 × 4 parts of three training frames
    0: [
        [56.5, 51.8, 37.0, 31.5],
        [57.4, 98.0, 90.8, 91.9],
        [111.1, 90.2, 54.9, 98.7],
        [102.6, 80.6, 81.6, 122.9],
    ],
    963: [
        [152.0, 147.1, 119.1, 45.6],
        [96.9, 95.8, 113.8, 69.5],
        [103.5, 87.5, 114.1, 113.5],
        [115.3, 86.1, 127.7, 114.5],
    ],
    2119: [
        [50.1, 50.6, 50.2, 45.3],
        [110.7, 105.2, 115.5, 110.8],
        [118.6, 93.6, 81.7, 120.9],
        [124.6, 129.4, 130.5, 107.2],
    ],
}


@pytest.mark.parametrize("i", PINNED)
def test_pictures_are_those_of_this_version(data: Dataset, i: int) -> None:
    """Fails when the pictures change: then raise VERSION, and redo what was measured on them."""
    assert tabletop.VERSION == 1
    parts = data.train.read(i).reshape(4, 24, 4, 24, 3).mean((1, 3, 4))
    np.testing.assert_allclose(parts, PINNED[i], atol=0.6)  # platforms may round differently


def test_same_parameters_same_bits() -> None:
    a, b = (
        VideoRenderer(TabletopVideo.draw(3, "teapot", 1, 2, 0.03), 48).frame(5) for _ in range(2)
    )
    assert np.array_equal(a, b)
    other = VideoRenderer(TabletopVideo.draw(4, "teapot", 1, 2, 0.03), 48).frame(5)
    assert np.abs(a.astype(int) - other).mean() > 5


def test_a_longer_set_begins_with_the_shorter(folder: Path) -> None:
    short = tabletop.load(**SMALL, cache=False)
    long = tabletop.load(frames=5, sessions=4, instances=3, size=24, cache=False)
    index = {long.train.key(i): i for i in range(len(long.train))}
    for i in range(0, len(short.train), 7):
        assert np.array_equal(short.train.read(i), long.train.read(index[short.train.key(i)]))


def test_keys_are_unique_and_name_the_parameters(data: Dataset) -> None:
    keys = {data.train.key(i) for i in range(len(data.train))}
    keys |= {data.test.key(i) for i in range(len(data.test))}
    assert len(keys) == len(data.train) + len(data.test)
    for options in ({"seed": 1}, {"size": 32}):
        assert tabletop.load(cache=False, **options).train.key(0) not in keys


def test_neighbouring_frames_are_alike(data: Dataset) -> None:
    rng = np.random.default_rng(0)
    near, far = [], []
    videos = rng.choice(np.unique(data.train.videos), 12, replace=False)
    for v in videos:
        rows = np.flatnonzero(data.train.videos == v)
        a, b, c = (data.train.read(int(rows[k])).astype(float) for k in (4, 5, 14))
        near.append(np.abs(a - b).mean())
        far.append(np.abs(a - c).mean())
    other = [data.train.read(int(i)).astype(float) for i in rng.integers(0, 2304, 12)]
    apart = [np.abs(x - y).mean() for x, y in itertools.pairwise(other)]
    assert np.mean(near) < 0.8 * np.mean(far)
    assert np.mean(near) < 0.5 * np.mean(apart)


@pytest.mark.parametrize("category", CATEGORIES)
def test_instances_differ_and_stand_on_the_table(category: str) -> None:
    clouds = [CATEGORIES[category](Variety([0, 1], i), 0.04) for i in range(6)]
    for cloud in clouds:
        assert -0.02 < cloud.xyz[:, 2].min() < 0.02
        assert 0.6 < np.ptp(cloud.xyz, axis=0).max() < 1.6
        np.testing.assert_allclose(np.linalg.norm(cloud.normal, axis=1), 1, atol=1e-3)
    looks = [np.r_[np.ptp(c.xyz, axis=0), c.rgb.mean(0)] for c in clouds]
    for i, a in enumerate(looks):
        for b in looks[:i]:
            assert np.abs(a - b).max() > 0.02


def test_sessions_differ() -> None:
    sessions = [FilmingSession.draw(0, k) for k in range(5)]
    for values in (
        [s.distance for s in sessions],
        [s.grain for s in sessions],
        [s.elevation for s in sessions],
        [float(s.table.mean()) for s in sessions],
        [float(s.room.std()) for s in sessions],
    ):
        assert len({round(v, 4) for v in values}) == 5


@pytest.mark.parametrize("style", PATTERNS)
def test_patterns_stay_between_their_colours(style: str) -> None:
    u, v = np.random.default_rng(0).random((2, 500)).astype(np.float32)
    base, ink = np.float32([0.1, 0.2, 0.3]), np.float32([0.9, 0.8, 0.7])
    rgb = pattern(style, base, ink, 0.5, 1)(u, v)
    assert rgb.shape == (500, 3)
    assert (rgb >= base - 1e-6).all()
    assert (rgb <= ink + 1e-6).all()


def test_the_object_is_seen_in_every_video(data: Dataset) -> None:
    for category in CATEGORIES:
        film = VideoRenderer(TabletopVideo.draw(0, category, 0, 1, 0.03), 48)
        _, cover = film.render_objects(*film.video.axes(0))
        assert cover[12:36, 12:36].mean() > 0.02


def test_cache_is_written_once_and_equals_the_renderer(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    first = tabletop.load(**SMALL, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (48, 48)
    (file,) = folder.iterdir()
    stamp = file.stat().st_mtime_ns
    again, fresh = tabletop.load(**SMALL), tabletop.load(**SMALL, cache=False)
    assert file.stat().st_mtime_ns == stamp
    for i in range(0, len(first.train), 5):
        assert np.array_equal(again.train.read(i), fresh.train.read(i))
        assert np.array_equal(first.test.read(i), fresh.test.read(i))


def reel(file: Path | None) -> tabletop.RenderedFrames:
    """Three short videos, on disk if a file is named."""
    source = tabletop.RenderedFrames((("mug", 0, 0), ("can", 1, 0), ("bowl", 0, 1)), 2, 24, 0, file)
    source.prepare()
    return source


@pytest.mark.parametrize("damage", ["empty", "cut", "longer", "header", "not numpy"])
def test_a_damaged_file_is_rendered_again(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "three.npy"
    expected = reel(file).read(3)
    whole = file.read_bytes()
    harm = {
        "empty": b"",
        "cut": whole[:-700],
        "longer": whole + b"1234",
        "header": whole[:30] + b"\xff" * 30 + whole[60:],
        "not numpy": b"PK\x03\x04" + whole,
    }
    file.write_bytes(harm[damage])
    assert np.array_equal(reel(file).read(3), expected)
    assert file.read_bytes() == whole


def test_a_damaged_frame_is_drawn_again(tmp_path: Path) -> None:
    file = tmp_path / "three.npy"
    fresh = reel(None)
    reel(file)
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 0x10
    file.write_bytes(raw)
    for i in range(6):
        assert np.array_equal(reel(file).read(i), fresh.read(i))


def _load(file: Path) -> int:
    source = reel(file)
    return sum(int(source.read(i).sum()) for i in range(6))


def test_two_at_once(tmp_path: Path) -> None:
    file = tmp_path / "three.npy"
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        a, b = pool.map(_load, [file, file])
    assert a == b == _load(file)
    assert list(tmp_path.iterdir()) == [file]


def test_a_failed_render_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: VideoRenderer, k: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(VideoRenderer, "frame", stop)
    with pytest.raises(KeyboardInterrupt):
        tabletop.load(**SMALL)
    assert list(folder.iterdir()) == []


def test_without_a_place_for_the_cache_it_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "file"))
    with pytest.warns(DataWarning, match="VERSE_CACHE"):
        data = tabletop.load(**SMALL)
    assert data.train.read(0).shape == (24, 24, 3)


def test_source_travels_to_other_processes(folder: Path) -> None:
    frames = tabletop.load(**SMALL).train
    frames.read(0)
    packed = pickle.dumps(frames)
    assert len(packed) < 20_000
    assert np.array_equal(pickle.loads(packed).read(5), frames.read(5))


@pytest.mark.parametrize(
    ("name", "value"),
    [("frames", 0), ("size", 8), ("seed", -1), ("sessions", 1), ("instances", 1), ("frames", 2.5)],
)
def test_bad_options_say_what_is_valid(name: str, value: object) -> None:
    with pytest.raises(BadSetting, match=f"{name} must be a whole number from"):
        tabletop.load(**{name: value}, cache=False)


def test_by_name_with_options(folder: Path) -> None:
    data = datasets.load("tabletop", every=2, options={**SMALL, "cache": False})
    assert (len(data.train), data.name) == (12, "tabletop")


@pytest.mark.slow
def test_difficulty_is_between_easy_and_hopeless(data: Dataset) -> None:
    """Nearest class mean on the default backbone's pooled features, one frame of each video."""
    backbones = pytest.importorskip("verse.backbones")
    G = backbones.build("efficientnet-lite0", at="fc").G
    thin = data.thin(every=16)
    Z = []
    for side in (thin.train, thin.test):
        batches = np.array_split(np.arange(len(side)), len(side) // 32)
        Z.append(np.concatenate([G([side.read(int(i)) for i in rows]).numpy() for rows in batches]))
    means = np.stack([Z[0][thin.train.labels == c].mean(0) for c in range(12)])
    answer = ((Z[1][:, None] - means) ** 2).sum(-1).argmin(1)
    assert 0.5 < (answer == thin.test.labels).mean() < 0.85
