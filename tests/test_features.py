"""Features are computed once: the store on disk, several processes, kills, damage, bad images."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from verse import features as module
from verse.backbones import identity
from verse.datasets.base import DataWarning, Frames, Source
from verse.features import Features, FeatureStore
from verse.types import BadData, BadImage, BadSetting

N = 100


class Numbers(Source):
    """Frame i is the number i, three times; some are damaged; reading is counted."""

    def __init__(self, bad: tuple[int, ...] = (), slow: float = 0.0, version: str = "") -> None:
        self.bad, self.slow, self.version = bad, slow, version
        self.reads = 0

    def read(self, i: int) -> np.ndarray:
        self.reads += 1
        time.sleep(self.slow)
        if i in self.bad:
            raise BadImage(f"frame {i} is torn")
        return np.full(3, i, np.float32)

    def key(self, i: int) -> str:
        return f"number {i} {self.version if i == 7 else ''}"


def frames(source: Source, n: int = N) -> Frames:
    return Frames(np.arange(n) % 4, np.arange(n) // 5, np.arange(n) % 5, source)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 4)
    monkeypatch.setattr(module, "CHUNK_BYTES", 8 * 12)


def test_features_are_those_of_g_in_any_order(tmp_path: Path) -> None:
    features = Features.of(frames(Numbers()), identity(3), folder=tmp_path)
    at = np.array([5, 99, 0, 5])
    assert features[at].tolist() == [[float(i)] * 3 for i in at]
    assert features[at].dtype == torch.float32
    assert len(features) == N


def test_nothing_is_read_twice(tmp_path: Path) -> None:
    source = Numbers()
    Features.of(frames(source), identity(3), folder=tmp_path)
    assert source.reads == N
    Features.of(frames(source), identity(3), folder=tmp_path)
    assert source.reads == N


def test_a_subset_and_a_superset_find_what_is_there(tmp_path: Path) -> None:
    source = Numbers()
    some = frames(source).thin(2)
    Features.of(some, identity(3), folder=tmp_path)
    assert source.reads == len(some)
    features = Features.of(frames(source), identity(3), folder=tmp_path)
    assert source.reads == N
    assert features[np.arange(N)][:, 0].tolist() == list(range(N))


def test_a_changed_frame_is_computed_again(tmp_path: Path) -> None:
    Features.of(frames(Numbers()), identity(3), folder=tmp_path)
    changed = Numbers(version="2")
    Features.of(frames(changed), identity(3), folder=tmp_path)
    assert changed.reads == 1


def test_another_g_has_another_store(tmp_path: Path) -> None:
    source = Numbers()
    Features.of(frames(source), identity(3), folder=tmp_path)
    Features.of(frames(source), identity(3), folder=tmp_path, dtype="float16")
    assert source.reads == 2 * N
    assert len(list((tmp_path / "features").iterdir())) == 2


def test_half_precision_is_half_the_size(tmp_path: Path) -> None:
    features = Features.of(frames(Numbers()), identity(3), folder=tmp_path, dtype="float16")
    (chunk,) = tmp_path.rglob("*.z")
    assert chunk.stat().st_size == N * (16 + 3 * 2)
    assert features[np.array([9])].dtype == torch.float32


@pytest.mark.usefixtures("small_chunks")
def test_a_killed_extraction_goes_on(tmp_path: Path) -> None:
    class Stop(BaseException):
        pass

    def stop(done: int, total: int) -> None:
        if done > 60:
            raise Stop

    source = Numbers()
    with pytest.raises(Stop):
        Features.of(frames(source), identity(3), folder=tmp_path, progress=stop)
    left: list[int] = []
    again = Numbers()
    Features.of(
        frames(again),
        identity(3),
        folder=tmp_path,
        progress=lambda done, total: left.append(total - done),
    )
    assert left[0] == again.reads < N - 40
    assert left[-1] == 0


def _extract(folder: str, slow: float) -> None:
    module.BATCH, module.CHUNK_BYTES = 4, 8 * 12
    Features.of(frames(Numbers(slow=slow)), identity(3), folder=Path(folder))


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and kill")
def test_kill_9_in_the_middle_and_two_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside torch's idle threads
        victims = [context.Process(target=_extract, args=(str(tmp_path), 0.01)) for _ in range(2)]
        for victim in victims:
            victim.start()
    deadline = time.monotonic() + 60
    while len(list(tmp_path.rglob("*.z"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.002)
    for victim in victims:
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        workers = [context.Process(target=_extract, args=(str(tmp_path), 0.001)) for _ in range(2)]
        for worker in workers:
            worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    source = Numbers()
    features = Features.of(frames(source), identity(3), folder=tmp_path)
    assert source.reads == 0
    assert features[np.arange(N)][:, 0].tolist() == list(range(N))


def test_without_cache_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path))
    features = Features.of(frames(Numbers()), identity(3), cache=False)
    assert features[np.array([3, 1])][:, 0].tolist() == [3, 1]
    assert not list(tmp_path.iterdir())
    assert features[np.empty(0, np.int64)].shape == (0, 3)


@pytest.mark.parametrize("cache", [True, False])
def test_unreadable_frames_are_left_out_or_refused(tmp_path: Path, cache: bool) -> None:
    source = Numbers(bad=(2, 50))
    with pytest.warns(DataWarning, match="2 of 100 images cannot be read, left out; the first: fr"):
        features = Features.of(frames(source), identity(3), folder=tmp_path, cache=cache)
    assert len(features) == N - 2
    assert set(features.skipped) == {2, 50}
    assert features[np.array([2, 97])][:, 0].tolist() == [3, 99]
    assert features.frames.frames[2] == 3
    with pytest.raises(BadImage, match=r"frame 2 is torn; mend or remove it"):
        Features.of(frames(source), identity(3), folder=tmp_path, cache=cache, strict=True)


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="none of the 5 images can be read"):
        Features.of(frames(Numbers(bad=tuple(range(5))), 5), identity(3), folder=tmp_path)


def test_a_damaged_chunk_is_computed_again(tmp_path: Path) -> None:
    Features.of(frames(Numbers()), identity(3), folder=tmp_path)
    (chunk,) = tmp_path.rglob("*.z")
    chunk.write_bytes(chunk.read_bytes()[:-5])
    source = Numbers()
    with pytest.warns(DataWarning, match="is damaged"):
        features = Features.of(frames(source), identity(3), folder=tmp_path)
    assert source.reads == N
    assert features[np.arange(N)][:, 0].tolist() == list(range(N))


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    FeatureStore(tmp_path, (3,), "float32")
    old, new = tmp_path / ".a.z.1.part", tmp_path / ".b.z.2.part"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    FeatureStore(tmp_path, (3,), "float32")
    assert not old.exists()
    assert new.exists()


def test_a_cache_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadSetting, match="VERSE_CACHE"):
        Features.of(frames(Numbers()), identity(3), folder=tmp_path / "file")
    with pytest.raises(BadSetting, match="float32 or float16"):
        Features.of(frames(Numbers()), identity(3), folder=tmp_path, dtype="int8")


def test_more_chunks_than_open_files(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path, (2,), "float32")
    keys = [i.to_bytes(16, "big") for i in range(300)]
    for i, key in enumerate(keys):
        store.add([key], torch.full((1, 2), float(i)))
    place = store.places(keys)
    chunk, row = (np.array([place[k][j] for k in keys]) for j in (0, 1))
    assert store.rows(chunk, row)[:, 0].tolist() == list(range(300))
    assert store.open_chunk.cache_info().currsize == 128
