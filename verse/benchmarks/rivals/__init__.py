"""Other libraries, each in an environment of its own, taking turns with ours.

Belongs here: code that installs and times another library. Does not belong here: timing of our
own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from verse import backbones
from verse.benchmarks import cases
from verse.benchmarks.cases import CLASSES
from verse.benchmarks.timing import alternate, ratio, summary
from verse.learners import VERSE, TinyER
from verse.memory import Reservoir
from verse.paths import cache_directory
from verse.types import VerseError

NEEDS = {
    "avalanche": ["avalanche-lib==0.6.0", "torch==2.13.0", "torchvision==0.28.0"],
    "river": ["river>=0.22"],
}
SCRIPTS = {"avalanche": "avalanche_replay.py", "river": "river_softmax.py"}
CAPACITY = 200


class Rival:
    """A child process that learns n samples when told to and says how long it took."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        python = interpreter(name)
        script = Path(__file__).parent / SCRIPTS[name]
        self.child = subprocess.Popen(
            [str(python), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._say(json.dumps(settings))
        while (line := self._hear()) != "ready":
            if not line:
                raise VerseError(f"{name} did not start; try {python} {script}")

    def learn(self, n: int) -> float:
        self._say(str(n))
        return float(self._hear()) / n

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait(30)

    def _say(self, line: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def _hear(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()


def interpreter(name: str) -> Path:
    """The environment's Python: VERSE_RIVAL_<NAME> if set, else one made in the user's cache."""
    named = os.environ.get(f"VERSE_RIVAL_{name.upper()}")
    if named:
        return Path(named)
    folder = cache_directory() / "rivals" / name
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    done = folder / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", *NEEDS[name]], check=True, stdout=sys.stderr
        )
        done.write_text("\n".join(NEEDS[name]))
    return python


def measure_avalanche(case: str, *, rounds: int, each: int) -> dict[str, Any]:
    """Avalanche's replay, our replay at the same number of draws, and VERSE, per sample."""
    F = cases.build_case(case).F
    Z = cases.features(F, 64)
    # where F is linear the rival has one linear layer of as many inputs
    shape = [F.head.d] if case in (cases.DEFAULT, cases.LIGHT) else [int(n) for n in F.z_shape]
    rival = Rival(
        "avalanche",
        {
            "shape": shape,
            "classes": CLASSES,
            "capacity": CAPACITY,
            "C": 16,
            "most": 400,
            "threads": torch.get_num_threads(),
        },
    )
    ours = {"replay": TinyER(F, Reservoir(CAPACITY)), "verse": VERSE(F, Reservoir(CAPACITY))}
    turn = iter(range(10**9))

    def learn(learner: Any) -> None:
        for _ in range(each):
            t = next(turn)
            learner.learn_one(Z[t % 64], t % CLASSES)

    for learner in ours.values():
        assert learner.memory is not None
        for t in range(40):  # so that every draw is full
            learner.memory.add(learner.F.stored(Z[t])[0], 0)
        for y in range(CLASSES):
            learner.learn_one(Z[y], y)
    rival.learn(40)
    times = alternate(
        {name: (lambda learner=learner: learn(learner)) for name, learner in ours.items()}
        | {"avalanche": lambda: rival.learn(each)},
        rounds,
    )
    rival.close()
    per = {k: [s / each for s in v] if k in ours else v for k, v in times.items()}
    return {
        "replay_speedup": ratio(per["avalanche"], per["replay"])["median"],
        "verse_speedup": ratio(per["avalanche"], per["verse"])["median"],
        **{name: summary(seconds) for name, seconds in per.items()},
    }


def measure_river(*, rounds: int, each: int) -> dict[str, Any]:
    F = backbones.identity(512).F
    learner = TinyER(F, Reservoir(CAPACITY))
    Z = torch.randn(64, 512, generator=torch.Generator().manual_seed(0))
    for t in range(60):
        learner.learn_one(Z[t], t % CLASSES)
    rival = Rival("river", {"shape": [512], "classes": CLASSES})
    turn = iter(range(10**9))

    def learn() -> None:
        for _ in range(each):
            t = next(turn)
            learner.learn_one(Z[t % 64], t % CLASSES)

    times = alternate({"replay": learn, "river": lambda: rival.learn(each)}, rounds)
    rival.close()
    per = {"replay": [s / each for s in times["replay"]], "river": times["river"]}
    return {
        "replay_speedup": ratio(per["river"], per["replay"])["median"],
        **{name: summary(seconds) for name, seconds in per.items()},
    }
