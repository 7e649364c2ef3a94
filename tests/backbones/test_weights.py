from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from verse import backbones
from verse.backbones.weights import PublishedWeights, find_weights, read_weights
from verse.paths import cache_directory
from verse.types import BadSetting, BadState

DATA = b"weights" * 500_000


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "net.pth").write_bytes(DATA)
    handler = functools.partial(_Quiet, directory=str(tmp_path / "www"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/net.pth"
        http.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_download_once_with_progress(server: str, cache: Path) -> None:
    published = PublishedWeights(server, {"net.pth": hashlib.sha256(DATA).hexdigest()})
    seen: list[tuple[int, int]] = []
    path = find_weights(published, backbone="net", progress=lambda *n: seen.append(n))
    assert path == cache / "net.pth"
    assert path.read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert list(cache.iterdir()) == [path]
    find_weights(published, backbone="net", progress=lambda *n: pytest.fail("downloaded again"))


def test_progress_goes_to_standard_error(
    server: str, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    find_weights(
        PublishedWeights(server, {"net.pth": hashlib.sha256(DATA).hexdigest()}), backbone="net"
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert "100 %" in err


def test_a_wrong_download_leaves_nothing(server: str, cache: Path) -> None:
    with pytest.raises(BadState, match="sha256"):
        find_weights(PublishedWeights(server, {"net.pth": "0" * 64}), backbone="net")
    assert list(cache.iterdir()) == []


def test_a_damaged_cache_is_refused(cache: Path) -> None:
    cache.mkdir()
    (cache / "resnet18-f37072fd.pth").write_bytes(b"half a file")
    with pytest.raises(BadState, match="damaged"):
        backbones.build("resnet18")


def test_without_weights_the_three_ways(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = PublishedWeights("http://127.0.0.1:9/net.pth", {"net.pth": "0" * 64})
    monkeypatch.setattr("verse.backbones.resnet18.PUBLISHED", dead)
    with pytest.raises(BadSetting, match=r"\(1\).*weights=PATH.*\(2\).*cache.*\(3\).*online"):
        backbones.build("resnet18")
    assert not list(cache.iterdir())


def test_the_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VERSE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory().name == "verse"


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (str(tmp_path / "pwned"),))

    torch.save({"a": Evil()}, tmp_path / "a.pth")
    with pytest.raises(BadState):
        read_weights(tmp_path / "a.pth")
    assert not (tmp_path / "pwned").exists()
    torch.save([1, 2], tmp_path / "b.pth")
    with pytest.raises(BadState, match="state dict"):
        read_weights(tmp_path / "b.pth")
