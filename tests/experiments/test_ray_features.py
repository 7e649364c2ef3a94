"""On a cluster features are a stage of their own: what one machine computed no other computes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from verse.experiments import Run, ray_engine
from verse.experiments.grid import plan_tasks
from verse.experiments.store import Store

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'verse-stream[ray]'")
Toy = Callable[..., Run]


def test_another_machine_reads_no_frame(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import verse_toy

    read, seen = verse_toy.Points.read, list[str]()
    machine = "one"

    def count(self: object, i: int) -> np.ndarray:
        seen.append(machine)
        return np.asarray(read(self, i))

    monkeypatch.setattr(verse_toy.Points, "read", count)
    monkeypatch.setattr(ray, "get", lambda reference: reference)  # what a cluster would carry
    tasks = plan_tasks([toy(learner="ncm", seed=seed) for seed in (0, 1)], Store(tmp_path))
    (features, *runs) = tasks
    assert features.kind == "features" and all(features.id in task.after for task in runs)
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / machine))
    monkeypatch.setattr(ray_engine, "_benches", {})
    report, made = ray_engine.run_task(features, None, {})
    assert report.kind == "done" and len(made) == 2  # training and test frames
    assert set(seen) == {"one"}

    machine = "two"
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / machine))
    monkeypatch.setattr(ray_engine, "_benches", {})
    for task in runs:
        report, _ = ray_engine.run_task(task, None, {features.id: made})
        assert report.kind == "done" and report.entry is not None, report.text
    assert set(seen) == {"one"}
    # without them it would have had to
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "three"))
    monkeypatch.setattr(ray_engine, "_benches", {})
    machine = "three"
    ray_engine.run_task(runs[0], None, {})
    assert "three" in seen
