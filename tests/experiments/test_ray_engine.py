"""A real Ray cluster of two nodes; one of them is killed in the middle."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from verse.experiments import Run, execute
from verse.experiments.engine import Task, TaskReport
from verse.experiments.grid import drive, plan_tasks
from verse.experiments.ray_engine import RayEngine
from verse.experiments.store import Store

pytest.importorskip("ray", reason="Ray is not installed: pip install 'verse-stream[ray]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, about its own insides
    pytest.mark.timeout(600),
]
Toy = Callable[..., Run]


@pytest.fixture
def cluster(
    _toy: None, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Any]:
    monkeypatch.setenv("PYTHONPATH", f"{root}:{root / 'tests' / 'toy'}")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_health_check_period_ms", "500")
    monkeypatch.setenv("RAY_health_check_failure_threshold", "3")
    monkeypatch.setenv("VERSE_TOY_NODES", str(tmp_path / "nodes"))
    (tmp_path / "nodes").mkdir()
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1,
            "include_dashboard": False,
            "object_store_memory": 80_000_000,
        },
    )
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def test_a_node_dies_and_the_grid_completes(
    toy: Toy, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    cluster.wait_for_nodes()
    # the first is short: when it is done, whoever steps is in the middle of a long one
    frames = [5, 100, 100]
    runs = [
        toy(learner="verse_toy.Slow", options={"frames": n}, seed=seed, offline=seed == 0)
        for seed, n in enumerate(frames)
    ]
    store, saved = Store(tmp_path / "results"), Counter[str]()
    kinds: list[str] = []
    first_saved: list[float] = []

    def watch(task: Task, report: TaskReport) -> None:
        kinds.append(report.kind)
        if report.entry is not None:
            saved[task.id] += 1
            first_saved[:] = first_saved or [time.time()]

    def kill() -> None:
        """The second machine, as soon as a run is saved and the machine is seen to step."""
        while True:
            for step in (tmp_path / "nodes").glob(f"{second.node_id}.*"):
                if first_saved and step.stat().st_mtime > first_saved[0]:
                    os.kill(int(step.suffix[1:]), signal.SIGKILL)  # may outlive Ray's own process
                    cluster.remove_node(second, allow_graceful=False)
                    (tmp_path / "nodes" / "hurry").touch()
                    return
            time.sleep(0.02)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    engine = RayEngine(cluster.address)
    assert engine.width == 2
    outcome = drive(plan_tasks(runs, store, partials=False), engine, store, watch)
    killer.join(60)
    assert not killer.is_alive()
    assert "lost" in kinds
    assert outcome.failed == {}
    assert saved == Counter(run.id for run in runs)  # none lost, none doubled
    assert store.ids() == set(saved)
    monkeypatch.delenv("VERSE_TOY_NODES")
    alone = execute(runs[0], threads=1)
    assert store.load(runs[0].id).alpha == alone.alpha
    assert store.load(runs[0].id).offline_alpha == alone.offline_alpha
