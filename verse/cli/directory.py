"""Opening a durable classifier from the shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verse.durable import DurableClassifier


def open_directory(
    directory: Path,
    threads: int | None,
    *,
    readonly: bool = False,
    options: dict[str, Any] | None = None,
) -> DurableClassifier:
    """Open with so many threads for learning and so many for G.

    Half the cores by default, in every command: so the service's learning and answering do not
    fight, and results are the same to the last bit whichever command learned.
    """
    import torch

    import verse

    n = threads or max(1, (os.cpu_count() or 2) // 2)
    torch.set_num_threads(n)
    return verse.open(directory, threads=n, readonly=readonly, **(options or {}))
