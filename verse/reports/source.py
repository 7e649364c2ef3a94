"""Where a report's numbers come from: a folder of results and two folders inside it."""

from __future__ import annotations

from pathlib import Path

from verse.experiments.store import Store
from verse.reports import losses
from verse.reports.cells import Sorted
from verse.types import BadState


def read(folder: Path) -> Sorted:
    """Finished runs; also those in ``tuning``, which must be on validation videos; ``losses``."""
    results = Store(folder).results()
    if (folder / "tuning").is_dir():
        for result in Store(folder / "tuning").results():
            if result.run.validation is None:
                raise BadState(
                    f"{folder / 'tuning'} holds {result.run.name}, which is tested on test videos: "
                    "move it away, settings are chosen on validation videos only"
                )
            results.append(result)
    return Sorted(results, losses.read(folder / "losses"))
