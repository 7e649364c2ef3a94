"""How figures look: one colour per learner everywhere, thin axes, files without dates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from verse.types import MissingExtra

try:
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise MissingExtra("matplotlib", "report") from error


# VERSE and its variants are warm, Offline is dark grey, rivals are cool.
_VERSE = ("#c8102e", "#f0780a", "#e0489a", "#8c1d40")
_RIVALS = ("#1f6fb4", "#2a9d8f", "#6a4c93", "#4cb0e0", "#7a9a01", "#34495e", "#b8860b", "#00695c")
OTHER = "#c4c8cc"
BOUND = "#444444"

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e8ea",
    "grid.linewidth": 0.8,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "svg.hashsalt": "verse",
    "svg.fonttype": "path",
}


def colours(learners: Sequence[str]) -> dict[str, str]:
    """Learner → colour, in the order given: the first rivals get colours, the rest are grey."""
    verses = [name for name in learners if name.startswith("verse")]
    rivals = [name for name in learners if not name.startswith("verse")]
    found = {name: _VERSE[i % len(_VERSE)] for i, name in enumerate(sorted(verses, key=len))}
    return found | {
        name: _RIVALS[i] if i < len(_RIVALS) else OTHER for i, name in enumerate(rivals)
    }


def panels(count: int, height: float, *, share: bool = True) -> tuple[Figure, list[Axes]]:
    """A row of panels, two rows from three on when they are wide."""
    figure = Figure(figsize=(max(5.2, 3.3 * count), height), dpi=150, layout="constrained")
    grid = figure.subplots(1, count, sharey=share, squeeze=False)
    axes = list(grid.ravel())
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(figure: Figure, folder: Path, name: str) -> str:
    """PNG and SVG; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    return name


def drawn() -> AbstractContextManager[None]:
    """The settings as a context: ``with drawn(): …``."""
    return matplotlib.rc_context(RC)
