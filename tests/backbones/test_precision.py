"""The choice of a precision is made by trying it in a child process."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from verse import backbones
from verse.backbones import precision
from verse.types import BadSetting


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path))
    precision.gain.cache_clear()
    yield
    precision.gain.cache_clear()


def trial(monkeypatch: pytest.MonkeyPatch, result: str | Exception) -> list[int]:
    calls: list[int] = []

    def run(*args: object, **settings: object) -> subprocess.CompletedProcess[str]:
        calls.append(1)
        if isinstance(result, Exception):
            raise result
        return subprocess.CompletedProcess([], 0, stdout=result)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_faster_is_taken_and_remembered(monkeypatch) -> None:
    calls = trial(monkeypatch, '{"float32": 2.0, "bfloat16": 1.0}')
    assert precision.resolve("auto") == precision.resolve("bfloat16") == "bfloat16"
    precision.gain.cache_clear()  # another process of the same user
    assert precision.resolve("auto") == "bfloat16"
    assert len(calls) == 1


def test_slower_is_not_taken_but_allowed(monkeypatch) -> None:
    trial(monkeypatch, '{"float32": 1.1, "bfloat16": 1.0}')
    assert precision.resolve("auto") == "float32"
    assert precision.resolve("bfloat16") == "bfloat16"


def test_a_machine_that_dies_of_it_is_told(monkeypatch) -> None:
    trial(monkeypatch, subprocess.CalledProcessError(-4, "python"))
    assert precision.resolve("auto") == "float32"
    with pytest.raises(BadSetting, match="illegal instruction"):
        backbones.build(
            "resnet18", at="layer4.1", weights="random", engine="torch", precision="bfloat16"
        )


def test_features_alone_need_no_trial(monkeypatch) -> None:
    calls = trial(monkeypatch, "")
    assert backbones.identity(4, precision="auto").F.precision == "float32"
    assert not calls


def test_unknown(monkeypatch) -> None:
    with pytest.raises(BadSetting, match="float16"):
        precision.resolve("float16")
