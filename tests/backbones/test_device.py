"""Devices: names, what is not there, and the whole way of a frame on one that is only pretended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import verse
from tests.fake_device import Elsewhere, fake_device
from verse import backbones, learners, memory
from verse.backbones.device import resolve_device
from verse.benchmarks import device as device_benchmark
from verse.classifier import StreamClassifier
from verse.cli import main
from verse.types import BadSetting

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 40, 50, 3), dtype=np.uint8)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """ "cuda" is there, and is the pretended device."""
    with fake_device() as name:
        here = lambda device: name if device in ("cuda", "auto") else device  # noqa: E731
        monkeypatch.setattr(backbones, "resolve_device", here)
        yield name


def test_auto_is_the_first_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_device("auto") == resolve_device("cpu") == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("auto") == resolve_device("mps") == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == "cuda"


def test_what_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no cuda device here: use device='cpu'"):
        resolve_device("cuda")
    with pytest.raises(BadSetting, match="use one of auto, cpu, cuda, mps"):
        StreamClassifier(device="gpu")
    with pytest.raises(BadSetting, match="no mps device here"):
        verse.open(tmp_path / "shelf", device="mps", weights="random")
    with pytest.raises(BadSetting, match="use engine='torch' on"), fake_device():
        backbones.engine.start_engine(
            torch.nn.ReLU(), torch.zeros(1, 2), engine="onnxruntime", threads=1, device="meta"
        )
    for command in (
        ["bench", "--device", "cuda"],
        ["serve", str(tmp_path / "s"), "--device", "mps"],
    ):
        told = CliRunner().invoke(main, command)
        assert told.exit_code == 2 and "device here" in told.output


@pytest.mark.parametrize("name", learners.names())
def test_every_learner_stays_on_its_device(name: str) -> None:
    with fake_device() as device:
        F = backbones.identity((6, 2, 2)).F.to(device)
        learner = learners.build(name, F, memory.get("class-balanced")(12), seed=0)
        Z = torch.randn(8, 6, 2, 2, generator=torch.Generator().manual_seed(0))
        for t in range(8):
            learner.learn_one(Z[t], t % 3)
        learner.consolidate()
        learner.load_state(learner.state())
        assert isinstance(learner.theta.data, Elsewhere)
        assert len(learner.predict_many(Z)) == 8


def test_the_pretended_device_refuses_what_a_gpu_refuses() -> None:
    with fake_device() as device, pytest.raises(RuntimeError, match="on the CPU and on the fake"):
        torch.zeros(3, device=device) + torch.zeros(3)


def test_a_frame_all_the_way(cuda: str, tmp_path: Path) -> None:
    """G and F there, what is saved goes on here with the same answers up to rounding."""
    there = StreamClassifier(device="cuda", at="fc", weights="random", learner="verse", threads=1)
    for i, image in enumerate(IMAGES):
        there.learn_one(image, i % 3)
    assert isinstance(there.learner.theta.data, Elsewhere)
    assert there.backbone.G.engine == "torch"
    there.save(tmp_path / "a.safetensors")
    here = StreamClassifier.load(tmp_path / "a.safetensors", threads=1)
    assert here.samples == 6 and here.learner.device.type == "cpu"
    for image in IMAGES:
        assert here.predict_proba_one(image) == pytest.approx(
            there.predict_proba_one(image), abs=1e-3
        )


def test_a_durable_classifier_and_the_service_take_it(cuda: str, tmp_path: Path) -> None:
    options = {"device": "cuda", "at": "fc", "weights": "random", "threads": 1}
    with verse.open(tmp_path / "shelf", **options) as shelf:
        for i, image in enumerate(IMAGES):
            shelf.learn_one(image, f"class {i % 2}")
    with verse.open(tmp_path / "shelf", device="cuda", threads=1) as shelf:
        assert shelf.samples == 6
        assert shelf.predict_one(IMAGES[0]) in ("class 0", "class 1")


def test_the_bench_measures_it_against_the_cpu(cuda: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_benchmark, "BATCH", 2)
    told = device_benchmark.measure("default", device=cuda, rounds=2)
    assert told["features_differ_by"] < 1e-4
    assert {"G_ms", "G_of_2_ms", "step_ms", "step_speedup_vs_cpu"} <= set(told)
