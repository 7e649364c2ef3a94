"""kill -9 and power failure: what was acknowledged is there, in order, once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import torch

from tests.durable.taught import DIM, clean, opened, same, stream

WRITER = textwrap.dedent("""
    import sys, torch, verse
    from verse import backbones
    from verse.durable import pace, write_ahead
    torch.set_num_threads(1)
    write_ahead.UNDO_WINDOW, pace.CHECKPOINT_EVERY, pace.LONGEST_JOURNAL = 10, 7, 40
    classifier = verse.open(sys.argv[1], backbone=backbones.identity((6,)))
    while True:
        n = classifier._journal.last
        generator = torch.Generator().manual_seed(n)
        z = torch.randn(6, generator=generator)
        seq = classifier.learn_feature(z, f"class {n % 5}", key=str(n))
        print(seq, flush=True)
""")


def test_kill_9(tmp_path) -> None:
    """Killed at random moments; what was printed is there, in order, once."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    rng = np.random.default_rng(0)
    acknowledged = 0
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, env=environment
        )
        assert writer.stdout is not None
        for _ in range(int(rng.integers(5, 120))):
            acknowledged = int(writer.stdout.readline())
        writer.kill()
        rest = writer.stdout.read().split()
        acknowledged = max(acknowledged, *map(int, rest)) if rest else acknowledged
        writer.wait()
        writer.stdout.close()
    with opened(tmp_path) as again:
        n = again.samples
        assert acknowledged <= n <= acknowledged + 1
        expected = clean(
            (torch.randn(DIM, generator=torch.Generator().manual_seed(i)), f"class {i % 5}")
            for i in range(n)
        )
        assert same(again, expected)


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
