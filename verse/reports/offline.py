"""The reference of Ω: Offline, the closed forms, and the gate."""

from __future__ import annotations

from operator import attrgetter

from verse.experiments.result import ALLOWED, Result
from verse.reports.cells import Bench, SortedResults, orders_of
from verse.reports.tables import Table, Text

NOTE = (
    "Mean accuracy over test events. The reference is what Ω_all divides by, chosen on held-out "
    "training videos. The gate: no closed form is above it by more than "
    f"{ALLOWED} at any event. Where no reference was chosen (older runs) it is Offline by SGD, and "
    "the gate is lenient: it asks for the weaker of two closed forms."
)


def tabulate_offline(found: SortedResults, bench: Bench) -> Table | None:
    """One row per ordering; None where no run has an Offline."""
    cells = found.main(bench)
    rows, records = [], []
    for order in orders_of(cells):
        # the same bounds serve all learners of a seed
        runs: dict[int, Result] = {
            r.run.seed: r for by in cells.values() for r in by.get(order, []) if r.offline
        }
        bounds = [bound for run in runs.values() for bound in run.offline]
        if not bounds:
            continue
        sound = sum(bound.sound for bound in bounds)
        closed = {
            name: _mean([b.closed[name] for b in bounds if name in b.closed])
            for name in bounds[0].closed
        }
        best = max(closed, key=closed.__getitem__, default="")
        sgd, used = (
            _mean([value(b) for b in bounds])
            for value in (attrgetter("accuracy"), attrgetter("reference"))
        )
        names = sorted({run.reference for run in runs.values()})
        weak = len(bounds) - sound
        gate = f"failed at {weak} of {len(bounds)} events: Ω is too high there"
        cells_ = [
            order,
            f"{sgd:.3f}",
            f"{best} {closed[best]:.3f}" if best else "–",
            f"{', '.join(names)} {used:.3f}",
            gate if weak else f"passed at all {len(bounds)} events",
            str(len(runs)),
        ]
        rows.append([Text(cell) for cell in cells_])
        records.append(
            {
                "dataset": bench.dataset,
                "backbone": bench.backbone,
                "order": order,
                "offline": sgd,
                **closed,
                "reference": ", ".join(names),
                "reference_accuracy": used,
                "events": len(bounds),
                "passed": sound,
                "seeds": len(runs),
                "flat": sum(bound.flat for bound in bounds),
            }
        )
    head = ["ordering", "Offline by SGD", "best closed form", "reference", "gate", "seeds"]
    title = f"What Ω divides by on {bench.title}"
    return Table(f"offline-{bench.slug}", title, head, rows, NOTE, records) if rows else None


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
