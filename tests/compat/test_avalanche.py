"""Avalanche's benchmarks as streams: by their shape, and with the real library.

The real library needs versions of its own, so it lives in an environment of its own, which is made
where ``CI`` is set (about a minute, kept under the user's cache) or named by the variable
``VERSE_AVALANCHE`` (the path of its Python).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace as Thing

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from tests.real_library import find_python
from verse.backbones import identity
from verse.compat.avalanche import build_stream, lessons
from verse.types import BadData

VERSION = "0.6.0"
VISION = "0.28.0"


def experience(*labels: int) -> Thing:
    y = torch.tensor(labels)
    return Thing(dataset=TensorDataset(torch.eye(8)[y] + torch.arange(len(y))[:, None] / 100, y, y))


def benchmark() -> Thing:
    train = [experience(*[3, 5] * 10), experience(*[0] * 20)]
    return Thing(train_stream=train, test_stream=[experience(3, 5, 0, 7)])


def test_experiences_become_test_events() -> None:
    s = build_stream(benchmark(), identity(8).G)
    assert [(e.after, sorted(e.classes)) for e in s.schedule.events] == [
        (20, [3, 5]),
        (40, [0, 3, 5]),
    ]
    assert s.schedule.events[1].select(s.test.y).tolist() == [0, 1, 2]
    assert set(s.train.y[:20].tolist()) == {3, 5} and set(s.train.y[20:].tolist()) == {0}
    assert not set(s.train.videos.tolist()) & set(s.test.videos.tolist())


def test_shuffling_stays_inside_an_experience_and_follows_the_seed() -> None:
    G = identity(8).G
    plain, one, again, two = (build_stream(benchmark(), G, seed=s).train for s in (None, 1, 1, 2))
    assert plain.y[:4].tolist() == [3, 5, 3, 5]
    assert torch.equal(one.z, again.z) and not torch.equal(one.z, two.z)
    moves = [np.argsort(one.z[part, 1].numpy()).tolist() for part in (slice(0, 20), slice(20, 40))]
    assert moves[0] != moves[1], "two experiences of equal length are shuffled differently"
    assert [y for _, y in lessons(benchmark(), seed=1)] == one.y.tolist()


def test_an_empty_benchmark_is_told() -> None:
    with pytest.raises(BadData, match="no training or no test"):
        build_stream(Thing(train_stream=[], test_stream=[]), identity(8).G)


def run(script: str, root: Path) -> subprocess.CompletedProcess[str]:
    """A script of this project beside the real library."""
    wanted = [f"avalanche-lib=={VERSION}", f"torchvision=={VISION}"]
    python = find_python("avalanche", wanted, root)
    return subprocess.run(
        [str(python), "-W", "ignore", str(root / script)],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_rivals_agree_with_those_of_the_real_library(root: Path) -> None:
    done = run("benchmarks/against_avalanche/rivals.py", root)
    assert done.returncode == 0, done.stdout + done.stderr
    told = {line.split()[0] for line in done.stdout.splitlines()}
    assert told == {"er-ace", "scr", "mir", "fecam", "slda"}


def test_the_real_library(root: Path) -> None:
    done = run("tests/compat/avalanche_script.py", root)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["version"] == VERSION
    assert told["after"] == [40, 80, 120] and told["tested_on"] == [20, 40, 60]
    assert [sorted(c) for c in told["classes"]] == [
        sorted(c for part in told["experiences"][: k + 1] for c in part) for k in range(3)
    ]
    assert min(told["accuracy"]) > 0.7
    assert told["same_with_workers"] and told["samples"] == 120
    assert told["arrival"] == list(dict.fromkeys(told["labels"]))
