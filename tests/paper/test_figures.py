"""What a figure shows, beyond its being drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from paper import ablation_figures
from tests.reports.made import made
from verse.reports import style
from verse.reports.cells import SortedResults


def test_no_whisker_leaves_the_comparison_with_maml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []

    def keep(figure: Figure, folder: Path, name: str) -> str:
        drawn.append(figure)
        return name

    monkeypatch.setattr(style, "save", keep)
    shares = {"verse": 0.2, "verse-lda": 0.9, "la-maml": 0.5}
    found = SortedResults(
        made(learner, seed, [share + 0.05 * (seed - 1)] * 6)
        for learner, share in shares.items()
        for seed in range(3)
    )
    (bench,) = found.benches
    assert ablation_figures.maml(found, bench, tmp_path) is not None
    (axis,) = drawn[0].axes
    ends = [
        np.asarray(path.vertices)[:, 1] for bars in axis.collections for path in bars.get_paths()
    ]
    assert np.max(ends) <= axis.get_ylim()[1]
