"""One rule for the cache, one way to write a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from verse import paths


def test_verse_cache_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "mine"))
    monkeypatch.delenv("VERSE_DATA", raising=False)
    assert paths.cache_directory() == tmp_path / "mine"
    assert paths.data_directory() == tmp_path / "mine" / "data"
    monkeypatch.setenv("VERSE_DATA", str(tmp_path / "data"))
    assert paths.data_directory() == tmp_path / "data"


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_CACHE_HOME is Linux's")
def test_without_it_the_platform_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VERSE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert paths.cache_directory() == tmp_path / "verse"


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    paths.write_atomic(file, b"old")

    def fail_halfway() -> None:
        with paths.open_atomic(file) as out:
            out.write(b"half of the n")
            raise RuntimeError("made to fail")

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert file.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["a.json"]
    paths.write_atomic(file, b"new")
    assert file.read_bytes() == b"new"


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    paths.write_atomic(file, b"old")
    with paths.open_atomic(file) as out:
        out.write(b"new")
        out.flush()
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"


def test_importing_it_imports_no_package() -> None:
    code = "import sys, verse.paths; print('platformdirs' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
