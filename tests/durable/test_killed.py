"""kill -9 and power failure: what was acknowledged is there, in order, once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.durable.taught import clean, opened, same, stream

KILL = Path(__file__).parents[2] / "benchmarks" / "kill.py"


def test_kill_9() -> None:
    """All operations, killed at random moments; the long version is the program itself."""
    command = [sys.executable, str(KILL), "--kills", "10", "--learners", "verse-joint,derpp"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "nothing acknowledged was lost" in done.stdout


def test_a_copy_of_the_directory_at_any_moment_opens(tmp_path) -> None:
    """Power failure: the files as they were, with whatever was in the log."""
    samples = stream(25)
    classifier = opened(tmp_path / "live")
    for t, (z, label) in enumerate(samples, 1):
        classifier.learn_feature(z, label)
        if t in (1, 8, 11, 25):
            copy = tmp_path / f"copy{t}"
            shutil.copytree(tmp_path / "live", copy, ignore=shutil.ignore_patterns("*-shm"))
            with opened(copy) as again:
                assert same(again, clean(samples[:t]))
    classifier.close()
