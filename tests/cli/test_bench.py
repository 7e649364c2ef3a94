"""``verse bench`` measures and reports; the figures themselves belong to docs/performance.md."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from verse.backbones import identity
from verse.cli import main
from verse.learners import VERSE
from verse.memory import Reservoir


@pytest.fixture(scope="module")
def results() -> dict:
    quick = ["bench", "--json", "--backbone", "light", "--rounds", "2", "--steps", "100"]
    result = CliRunner().invoke(main, quick)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_step(results: dict) -> None:
    step = results["verse_step"]
    assert step["speedup_vs_textbook"]["light"] > 0
    assert 0 < step["limit_ratio"]["light"] < 2
    assert step["verse"]["light"]["quartile_low_ms"] <= step["verse"]["light"]["median_ms"]


def test_growth(results: dict) -> None:
    assert set(results["memory"]["slope_bytes_per_step"]["light"]) == {
        "capacity 10", "capacity 100,000", "1,000 classes",
    }  # fmt: skip


def test_the_machine_is_named(results: dict) -> None:
    assert results["machine"]["threads"] >= 1


@pytest.mark.parametrize(("option", "value"), [("--rounds", "1"), ("--steps", "5")])
def test_too_little(option: str, value: str) -> None:
    result = CliRunner().invoke(main, ["bench", option, value])
    assert result.exit_code == 2
    assert option in result.output


def test_frame_and_prediction(results: dict, root: Path) -> None:
    """The default network, smallest plastic part, two rounds."""
    import importlib

    assert str(root / "benchmarks") in sys.path  # put there by the command
    frame = importlib.import_module("frame").measure(
        "efficientnet-lite0", "fc", precision="float32", rounds=2
    )
    assert frame["frames_per_second"] > 0 and frame["speedup_vs_textbook"] > 0
    predict = importlib.import_module("predict").measure(
        "efficientnet-lite0", "fc", precision="float32", rounds=4
    )
    assert predict["p50_ms"] > 0 and predict["p95_while_learning_over_idle"] > 0


def test_the_textbook_is_the_same_method(results: dict) -> None:
    """One step of the plain code from the same weights and memory, all of it drawn: same θ."""
    from textbook import TextbookVERSE

    F = identity(6).F
    learner = VERSE(F, Reservoir(20), C=16, r=0.0)
    Z = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    for t in range(5):
        learner.learn_one(Z[t], t % 2)
    plain = copy.deepcopy(F)
    plain.head.n = 2
    plain.head.weight.data[:2] = learner.theta.state()["head.weight"]
    plain.head.bias.data[:2] = learner.theta.state()["head.bias"]
    textbook = TextbookVERSE(plain, C=16, r=0.0)
    textbook.phi.head.weight.data[:2] = learner.phi.state()["head.weight"]
    textbook.phi.head.bias.data[:2] = learner.phi.state()["head.bias"]
    textbook.memory = [(Z[t], t % 2) for t in range(5)]
    learner.learn_one(Z[5], 1)
    textbook.learn_one(Z[5], 1)
    torch.testing.assert_close(
        textbook.F.head.weight.data[:2], learner.theta.state()["head.weight"], rtol=1e-5, atol=1e-6
    )
