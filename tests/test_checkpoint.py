"""What was saved comes back; what was damaged is refused."""

from __future__ import annotations

import pytest
import torch
from safetensors import safe_open

from verse import checkpoint, paths
from verse.types import BadState

TENSORS = {
    "weights": torch.randn(3, 4),
    "empty": torch.zeros(0, dtype=torch.int64),
    "scalar": torch.tensor(3),
    "half": torch.ones(5, dtype=torch.bfloat16),
    "view": torch.arange(12).view(3, 4).t(),
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.verse"
    checkpoint.write(path, TENSORS, {"learner": "verse", "settings": {"r": 0.1}})
    return path


def test_round_trip(file) -> None:
    tensors, document = checkpoint.read(file)
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype and torch.equal(tensors[name], tensor)
    assert document["spec"] == {"learner": "verse", "settings": {"r": 0.1}}
    assert checkpoint.differences(document["circumstances"]) == []


def test_is_plain_safetensors(file) -> None:
    with safe_open(file, "pt") as opened:
        assert set(opened.keys()) == set(TENSORS)


def test_every_cut_is_refused(file, tmp_path) -> None:
    content = file.read_bytes()
    cut = tmp_path / "cut"
    for length in [0, 1, 7, 8, 20, len(content) // 2, len(content) - 1]:
        cut.write_bytes(content[:length])
        with pytest.raises(BadState):
            checkpoint.read(cut)


def test_every_flipped_byte_is_refused(file, tmp_path) -> None:
    content = bytearray(file.read_bytes())
    changed = tmp_path / "changed"
    for at in range(0, len(content), 3):
        content[at] ^= 1
        changed.write_bytes(content)
        with pytest.raises(BadState):
            checkpoint.read(changed)
        content[at] ^= 1


def test_newer_format_is_refused(file, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checkpoint, "FORMAT", 99)
    newer = tmp_path / "newer"
    checkpoint.write(newer, TENSORS, {})
    monkeypatch.setattr(checkpoint, "FORMAT", 1)
    with pytest.raises(BadState, match="upgrade"):
        checkpoint.read(newer)


def test_missing_file() -> None:
    with pytest.raises(BadState, match="no file"):
        checkpoint.read("does-not-exist")


def test_failed_write_leaves_the_old_file(file, monkeypatch) -> None:
    before = file.read_bytes()
    monkeypatch.setattr(paths.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        checkpoint.write(file, TENSORS, {})
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_other_circumstances_are_named(monkeypatch) -> None:
    then = checkpoint.circumstances()
    monkeypatch.setattr(checkpoint, "circumstances", lambda: then | {"threads": "64"})
    assert checkpoint.differences(then) == [f"threads was {then['threads']}, is 64"]
    del then["numpy"]  # of a version that did not note it
    assert checkpoint.differences(then) == [f"threads was {then['threads']}, is 64"]


def test_versions_threads_and_machine_are_noted() -> None:
    noted = checkpoint.circumstances()
    assert set(noted) == {"torch", "numpy", "onnxruntime", "threads", "machine", "processor"}
    assert all(noted.values())
