"""What the methods cost: time per step and per test, memory in samples and in bytes."""

from __future__ import annotations

from statistics import median

from verse.experiments.result import Result
from verse.reports.cells import Bench, SortedResults
from verse.reports.scores import format_name
from verse.reports.tables import Table, Text


def tabulate_costs(found: SortedResults, bench: Bench) -> Table:
    """One row per learner; medians over its runs."""
    rows, records = [], []
    for name, by in found.main(bench).items():
        runs = [run for results in by.values() for run in results]
        step = median(run.learn_seconds / max(run.learned, 1) for run in runs)
        test = median(_test_seconds(run) for run in runs)
        samples, size = (
            int(median(getattr(run, field) for run in runs))
            for field in ("capacity", "memory_bytes")
        )
        whole = median(run.seconds for run in runs)
        records.append(
            {
                "dataset": bench.dataset,
                "backbone": bench.backbone,
                "learner": name,
                "ms_per_step": 1000 * step,
                "seconds_per_test": test,
                "seconds_per_run": whole,
                "memory_samples": samples,
                "memory_bytes": size,
            }
        )
        rows.append(
            [
                Text(format_name(name)),
                Text(f"{1000 * step:.1f}"),
                Text(f"{test:.2f}"),
                Text(f"{whole:.0f}"),
                Text(f"{samples:,}" if samples else "–"),
                Text(f"{size / 1e6:.2f}" if size else "–"),
            ]
        )
    head = ["learner", "ms a step", "s a test", "s a run", "memory, samples", "memory, MB"]
    note = (
        "Medians over runs, one thread each, several runs at once and at different times: "
        "differences below a factor of two mean nothing. "
        "A step is learning alone, without G; a test includes what is trained for it. "
        "Memory is what stands for samples, kept ones and statistics; copies of the network that a "
        "method keeps (teachers, anchors, importances) are not in it."
    )
    return Table(f"cost-{bench.slug}", f"Cost on {bench.title}", head, rows, note, records)


def _test_seconds(run: Result) -> float:
    return sum(event.seconds for event in run.events) / len(run.events)
