"""What tests share: where the real data is, and one thread unless OMP_NUM_THREADS says more."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

# Before torch, numpy or ONNX Runtime start their thread pools.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is slow, not wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

ROOT = Path(__file__).resolve().parent.parent


def _place(variable: str, beside: str) -> Path:
    """The folder an environment variable names, or the one beside the project."""
    named = os.environ.get(variable)
    return Path(named) if named else ROOT.parent / "shared" / beside


@pytest.fixture(scope="session", autouse=True)
def _threads() -> None:
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The world of points (tests/toy), importable by name as a user's own data set would be, here
    and in processes that are started. Its points are learned at once: Offline takes few steps."""
    monkeypatch.syspath_prepend(ROOT / "tests" / "toy")
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("VERSE_TOY_OFFLINE", "50")
    monkeypatch.setattr("verse.experiments.reference.STEPS", 50)


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """``real_data("eth80")`` is the folder of a real data set; without it the test is skipped."""

    def find(name: str) -> Path:
        folder = _place("VERSE_DATA", "data") / name
        if not folder.is_dir():
            pytest.skip(f"no {name} in {folder.parent}: set VERSE_DATA to the folder that holds it")
        return folder

    return find


@pytest.fixture(scope="session")
def shared_weights() -> Path:
    """The folder of pretrained weights; without it the test is skipped."""
    folder = _place("VERSE_WEIGHTS", "weights")
    if not folder.is_dir():
        pytest.skip(f"no weights in {folder}: set VERSE_WEIGHTS to the folder that holds them")
    return folder
