"""``verse bench`` measures and reports; the figures themselves belong to docs/performance.md."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from click.testing import CliRunner

from verse import learners
from verse.backbones import identity
from verse.benchmarks import growth
from verse.benchmarks import overview as overview_part
from verse.benchmarks.textbook import TextbookVERSE
from verse.cli import main
from verse.cli.bench import overview
from verse.configuration import DEFAULT_LEARNER
from verse.learners import VERSE
from verse.memory import Reservoir


@pytest.fixture(scope="module")
def results() -> dict:
    quick = [
        "bench",
        "--json",
        "--rounds",
        "2",
        "--steps",
        "100",
        "--backbone",
        "default",
        "--backbone",
        "light",
        "--part",
        "default",
        "--part",
        "step",
        "--part",
        "growth",
        "--part",
        "frame",
        "--part",
        "predict",
    ]
    with pytest.MonkeyPatch.context() as small:
        small.setattr(overview_part, "LESSONS", 20)
        small.setattr(overview_part, "MEASURED", 5)
        small.setattr(growth, "D", 32)
        small.setattr(growth, "LARGE", 2_000)
        small.setattr(growth, "MANY", (10, 100, 1_000))
        result = CliRunner().invoke(main, quick)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_what_a_user_asks_first(results: dict) -> None:
    default = results["default"]
    assert default["sample_bytes"] == 4 * 1280 + 8  # the feature and its label
    assert default["step_speedup_vs_head"] > 0 and default["head_step_ms"] > 0
    assert set(default["learners"]) == set(learners.names()) - {"offline"}
    for name, measured in default["learners"].items():
        frame = 1e3 / measured["frames_per_second"]
        assert frame == pytest.approx(default["decode_and_G_ms"] + measured["step_ms"]), name
    # three megabytes of memory and, of ten classes, two networks of capacity 16 (θ and Φ)
    verse = default["learners"]["verse"]["megabytes"]
    assert 3.0 < verse < 3.0 + 2 * 16 * 1281 * 4 / 1e6 + 0.01


def test_the_table_begins_with_frames_and_megabytes(results: dict) -> None:
    table = list(overview(results["default"]))
    assert table[0]["learner"].endswith("(default)")
    assert {"frames/s", "MB"} < set(table[0])


def test_step(results: dict) -> None:
    step = results["verse_step"]
    for case in ("default", "light"):
        times = step["verse"][case]
        assert times["quartile_low_ms"] <= times["median_ms"] <= times["quartile_high_ms"]
        # how they compare depends on the machine and on who else uses it
        assert step["speedup_vs_textbook"][case] > 0 and step["textbook"][case]["median_ms"] > 0
        assert step["limit_ratio"][case] > 0


def test_growth(results: dict) -> None:
    memory = results["memory"]
    assert set(memory["slope_bytes_per_step"]["light"]) == {
        "capacity 10",
        "capacity 2,000",
        "1,000 classes",
    }
    assert set(memory["by_classes"]["light"]) == {"10", "100", "1000"}


def test_frame_and_prediction(results: dict) -> None:
    frame, predict = results["frame"], results["predict"]
    assert frame["learner"]["default"] == DEFAULT_LEARNER
    assert frame["at"]["default"] == "grid"
    assert frame["learn_predict_per_second"]["default"] > 0 < frame["frames_per_second"]["default"]
    ratio = predict["p95_while_learning_over_idle"]["default"]
    assert ratio == pytest.approx(
        predict["p95_while_learning_ms"]["default"] / predict["p95_ms"]["default"]
    )


def test_the_machine_is_named(results: dict) -> None:
    assert results["machine"]["threads"] >= 1


@pytest.mark.parametrize(
    ("option", "value"), [("--rounds", "1"), ("--steps", "5"), ("--device", "abacus")]
)
def test_nonsense_is_refused(option: str, value: str) -> None:
    result = CliRunner().invoke(main, ["bench", option, value])
    assert result.exit_code == 2
    assert option.strip("-") in result.output


def test_the_textbook_is_the_same_method() -> None:
    """One step of the plain code from the same weights and memory, all of it drawn: same θ."""
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
