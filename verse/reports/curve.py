"""The α_t curve of one or several runs as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from verse.experiments.result import Result
from verse.extras import OptionalImport
from verse.types import BadSetting

with OptionalImport():
    from matplotlib.figure import Figure

ENDINGS = (".png", ".svg", ".pdf")


def check_figure_path(path: Path) -> None:
    """Refuse a name that is no figure, before hours of work end in it."""
    if path.suffix.lower() not in ENDINGS:
        raise BadSetting(f"{path}: a figure ends in one of {', '.join(ENDINGS)}")


def plot(path: Path, results: Mapping[str, Result], title: str = "") -> None:
    """Accuracy over the stream, one line per run; Offline dashed where it is known."""
    check_figure_path(path)
    figure = Figure(figsize=(7, 4.8), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for name, result in results.items():
        after = [event.after for event in result.events]
        label = f"{name} (mean {result.mu_all:.3f})"
        axes.plot(after, result.alpha, marker="o", markersize=4, linewidth=1.8, label=label)
    bounds = next((r for r in results.values() if r.offline_alpha is not None), None)
    if bounds is not None:
        after = [event.after for event in bounds.events]
        axes.plot(after, bounds.offline_alpha or [], "--", color="0.4", label="Offline (bound)")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.set_xlabel("frames learned")
    axes.set_ylabel("accuracy on the classes under test")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    # below the curves, which may run anywhere
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
