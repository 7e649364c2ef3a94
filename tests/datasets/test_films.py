from __future__ import annotations

import os
import shutil
import sys

import numpy as np
import pytest

from verse import datasets
from verse.types import BadData, MissingExtra


def load(root, holdout=None):
    return datasets.load(f"folder:{root}", holdout=holdout)


@pytest.fixture
def film(tmp_path):
    av = pytest.importorskip("av", reason="films need the extra video (PyAV)")
    for name in ("a", "b"):
        path = tmp_path / "cup" / f"{name}.mp4"
        path.parent.mkdir(exist_ok=True)
        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=10)
            stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
            stream.codec_context.gop_size = 5
            for k in range(12):
                frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 20 * k, np.uint8), "rgb24")
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
    return tmp_path


def test_films_in_any_order(film):
    found = load(film, "last:1")
    assert (len(found.train), len(found.test)) == (12, 12)
    assert {found.video_names[v] for v in found.test.videos.tolist()} == {"b"}
    for i in (0, 1, 2, 11, 3, 7, 6, 0):
        assert abs(int(found.train.read(i).mean()) - 20 * i) <= 6, i
    assert found.train.key(3) != found.train.key(4)
    assert found.train.name(3).startswith("cup/a.mp4")


def test_a_film_is_known_by_its_content(film, tmp_path):
    """A copy, or a film laid out anew with another time, keeps its features."""
    before = [load(film).train.key(i) for i in range(12)]
    os.utime(film / "cup" / "a.mp4", ns=(1, 1))
    assert [load(film).train.key(i) for i in range(12)] == before
    copy = shutil.copytree(film / "cup", tmp_path / "copy" / "cup").parent
    assert load(copy).train.key(7) == before[7]
    with (copy / "cup" / "a.mp4").open("ab") as file:
        file.write(b"more")
    assert load(copy).train.key(7) != before[7]


def test_films_survive_pickling(film):
    import pickle

    found = load(film)
    found.train.read(0)
    copy = pickle.loads(pickle.dumps(found.train))
    np.testing.assert_array_equal(copy.read(5), found.train.read(5))


def test_threads_do_not_take_a_film_from_each_other(film, monkeypatch):
    """Two threads that read two films in turns open each of them once."""
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    from verse.datasets import films

    found, opened, together = load(film, "last:1"), [], Barrier(2)
    assert found.train.source is found.test.source
    make = films.Film.__init__

    def counted(self, path):
        opened.append(path.name)
        make(self, path)

    monkeypatch.setattr(films.Film, "__init__", counted)

    def read(side):
        images = []
        for i in range(3):
            together.wait(60)  # both are at the same frame of their film
            images.append(side.read(i))
        return images

    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(read, (found.train, found.test)))
    assert sorted(opened) == ["a.mp4", "b.mp4"]
    for side, images in zip((found.train, found.test), both, strict=True):
        assert all(np.array_equal(side.read(i), images[i]) for i in range(3))


def test_a_damaged_film(film):
    (film / "cup" / "c.mp4").write_bytes(b"no film")
    with pytest.raises(BadData, match="cannot be opened as a film"):
        load(film)


def test_films_without_the_extra(tmp_path, monkeypatch):
    (tmp_path / "cup").mkdir()
    (tmp_path / "cup" / "a.mp4").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtra, match=r"\[video\]"):
        load(tmp_path)
