"""``verse predict --ask``: the right label, asked for at the terminal and taught."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import verse
from verse.cli import main


@pytest.fixture
def things(tmp_path: Path) -> Path:
    with verse.open(tmp_path / "d", learner="slda", weights="random") as classifier:
        for i in range(4):
            for label, value in (("dark", 10), ("light", 240)):
                classifier.learn_one(np.full((32, 32, 3), value + i, np.uint8), label)
    noise = np.random.default_rng(0).integers(0, 255, (32, 32, 3), np.uint8)
    for name in ("a.png", "b.png", "c.png"):
        Image.fromarray(noise).save(tmp_path / name)
    return tmp_path


def run(things: Path, given: str) -> None:
    images = [str(things / name) for name in ("a.png", "b.png", "c.png")]
    command = [*("predict", str(things / "d"), "--ask", "--weights", "random"), *images]
    done = CliRunner().invoke(main, command, input=given)
    assert done.exit_code == 0, done.output


def taught(things: Path) -> dict[str | int, int]:
    with verse.open(things / "d", readonly=True, weights="random") as classifier:
        return classifier.taught


def test_a_new_name_enter_and_a_dash(things: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verse.cli.correct.has_terminal", lambda: True)
    run(things, "noise\n\n-\n")
    # the second is the same picture: it is answered as it was just taught, and confirmed
    assert taught(things) == {"dark": 4, "light": 4, "noise": 2}


def test_without_a_terminal_nothing_is_taught(things: Path) -> None:
    run(things, "noise\nnoise\nnoise\n")
    assert taught(things) == {"dark": 4, "light": 4}
