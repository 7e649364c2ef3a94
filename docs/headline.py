"""The headline table of the README, from finished runs and the recipes that hold them."""

from __future__ import annotations

from pathlib import Path

import measured

from verse.experiments.store import Store
from verse.reports import headline
from verse.reports.cells import Sorted

ROOT = Path(__file__).parent.parent
NONE = "No finished run yet.\n"


def block() -> str:
    """Markdown: the table, and how to read it."""
    folder = ROOT / "results"
    found = Sorted(Store(folder).results() if folder.is_dir() else [])
    commands = {run: f"verse compare {recipe}" for run, recipe in measured.recipes().items()}
    table = headline.table(found, commands)
    return f"{table.markdown()}\n\n{table.note}\n" if table.rows else NONE
