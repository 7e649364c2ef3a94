"""What a figure shows, beyond its being drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from paper import ablation_figures, figures, verdicts
from paper.source import PaperResults
from tests.reports.made import made
from verse.reports import scores, style
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


def test_texts_say_what_is_drawn(tmp_path: Path) -> None:
    found = PaperResults(
        made(learner, seed, [share + 0.01 * seed] * 6)
        for learner, share in (("verse", 0.6), ("tinyer", 0.5))
        for seed in range(3)
    )
    shown = figures.leads(verdicts.of_paper(found), tmp_path)
    assert shown is not None
    assert shown.title == "Lead of VERSE over the best method of the paper's comparison"
    assert "own scale" not in shown.note  # there is one panel
    listed = scores.records(found)
    assert "Dotted" not in figures.overview(found, listed, tmp_path).note
    limited = [record | {"ceiling": 0.5} for record in listed]
    assert "Dotted" in figures.overview(found, limited, tmp_path).note
