"""Offline, which Ω divides by: its own accuracy, and the gate that it must pass."""

from __future__ import annotations

from verse.experiments.result import Result
from verse.reports.cells import Bench, Sorted, orders_of
from verse.reports.tables import Table, Text

NOTE = (
    "The gate: Offline must be at least as good as ridge regression or linear discriminant "
    "analysis on the embedding that F starts with, at every test event. This is a lenient gate: it "
    "asks for the weaker of the two. Where a closed form is above Offline, or would be on other "
    "features, a method that uses it can exceed Ω = 1: read Ω beside the accuracy."
)


def table(found: Sorted, bench: Bench) -> Table | None:
    """One row per ordering; None where no run has an Offline."""
    cells = found.main(bench)
    rows, records = [], []
    for order in orders_of(cells):
        # the same bound serves all learners of a seed
        runs: dict[int, Result] = {
            r.run.seed: r for by in cells.values() for r in by.get(order, []) if r.offline
        }
        bounds = [bound for run in runs.values() for bound in run.offline]
        if not bounds:
            continue
        sound = sum(bound.sound for bound in bounds)
        both = sum(bound.accuracy >= max(bound.ridge, bound.lda) for bound in bounds)
        means = [sum(getattr(b, part) for b in bounds) / len(bounds)
                 for part in ("accuracy", "ridge", "lda")]  # fmt: skip
        passed = "passed" if sound == len(bounds) else "failed: Ω is too high here"
        rows.append([
            Text(order), *(Text(f"{mean:.3f}") for mean in means), Text(passed),
            Text(f"{sound} of {len(bounds)}"), Text(f"{both} of {len(bounds)}"),
            Text(f"{sum(bound.flat for bound in bounds)} of {len(bounds)}"), Text(str(len(runs))),
        ])  # fmt: skip
        records.append({
            "dataset": bench.dataset, "backbone": bench.backbone, "order": order,
            "offline": means[0], "ridge": means[1], "lda": means[2], "events": len(bounds),
            "passed": sound, "above_both": both, "seeds": len(runs),
        })  # fmt: skip
    head = ["ordering", "Offline, mean accuracy", "ridge", "LDA", "gate", "events passed",
            "above both", "trained until flat", "seeds"]  # fmt: skip
    title = f"Offline and its gate on {bench.title}"
    return Table(f"offline-{bench.slug}", title, head, rows, NOTE, records) if rows else None
