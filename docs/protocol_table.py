"""The table of docs/protocol.md from finished runs: ``python docs/protocol_table.py runs``."""

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


def main(folder: Path) -> None:
    """Print the table, data sets and orderings in a fixed order."""
    results = [Result.load(path) for path in sorted(folder.glob("*.json"))]
    orders = streams.names()
    results.sort(key=lambda r: (r.run.dataset, orders.index(r.run.order)))
    print("| data | ordering | frames | memory | μ_all | final | Offline, mean | Ω_all | gate |")
    print("|---|---|---|---|---|---|---|---|---|")
    for result in results:
        print(row(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
