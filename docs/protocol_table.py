"""The table of docs/protocol.md: ``python docs/protocol_table.py FOLDER`` of finished runs.

A folder filled by `verse compare` will do: VERSE as it is, seed 0, with Offline, is taken.
"""

from __future__ import annotations

import sys
from pathlib import Path

from verse import streams
from verse.experiments.result import Result


def row(result: Result) -> str:
    """One line of the table."""
    run = result.run
    bounds = result.offline_alpha or [float("nan")]
    gate = "passed" if all(bound.sound for bound in result.offline) else "**failed**"
    cells = [
        run.dataset.removeprefix("folder:"), run.order, f"{result.frames:,}",
        f"{result.capacity}", f"{result.mu_all:.3f}", f"{result.alpha[-1]:.3f}",
        f"{sum(bounds) / len(bounds):.3f}", f"{result.omega_all or float('nan'):.3f}", gate,
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def taken(result: Result) -> bool:
    """Is this one of the runs that the page lists?"""
    run = result.run
    plain = run.learner == "verse" and not run.settings and run.seed == 0 and run.fps is None
    return plain and run.capacity == "4%" and run.validation is None and bool(result.offline)


def main(folder: Path) -> None:
    """Print the table, data sets and orderings in a fixed order."""
    results = [r for r in map(Result.load, sorted(folder.glob("*.json"))) if taken(r)]
    orders = streams.names()
    results.sort(key=lambda r: (r.run.dataset, orders.index(r.run.order)))
    print("| data | ordering | frames | memory | μ_all | final | Offline, mean | Ω_all | gate |")
    print("|---|---|---|---|---|---|---|---|---|")
    for result in results:
        print(row(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
