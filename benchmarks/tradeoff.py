"""How deep should F reach? Accuracy on validation videos against frames per second, per split.

    verse compare recipes/split-depth.toml --results results/split-depth   # needs VERSE_DATA
    python benchmarks/tradeoff.py results/split-depth docs/images/tradeoff.png

Accuracy comes from the finished runs: VERSE with its defaults, class-instance, validation videos
taken out of training, so that the choice of a default never sees a test video. Frames per second
are measured now and in turns, one frame of every split after another, so the machine should be
idle. Prints the table as Markdown.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from verse import backbones
from verse.backbones import Backbone
from verse.benchmarks.cases import CLASSES, STORED, pictures
from verse.benchmarks.timing import alternate
from verse.classifier import StreamClassifier
from verse.experiments.result import Result
from verse.experiments.store import Store

SPLITS = ("fc", "head", "blocks.last")
ROUNDS = 40


def accuracies(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Data set → split → μ_all of each seed."""
    found: dict[str, dict[str, list[float]]] = {}
    for result in Store(folder).results():
        name = result.run.dataset.removeprefix("folder:")
        split = result.run.at or "head"
        found.setdefault(name, {at: [] for at in SPLITS})[split].append(_mu(result))
    return found


def _mu(result: Result) -> float:
    return float(result.summary()["mu_all"])


def classifier_with_memory(backbone: Backbone, files: list[bytes]) -> StreamClassifier:
    classifier = StreamClassifier(backbone=backbone, learner="verse", capacity=2 * STORED)
    Z = classifier.features(files)
    for t in range(STORED):
        classifier.learn_feature(Z[t % len(Z)], t % CLASSES)
    return classifier


def frames_per_second() -> dict[str, float]:
    files = pictures()
    classifiers = {
        at: classifier_with_memory(backbones.build(at=at, weights="random"), files) for at in SPLITS
    }
    works = {
        at: (lambda c=c: c.learn_one(files[0], 0))  # type: ignore[misc]
        for at, c in classifiers.items()
    }
    times = alternate(works, ROUNDS)
    return {at: 1 / statistics.median(seconds) for at, seconds in times.items()}


def table(speed: dict[str, float], accuracy: dict[str, dict[str, list[float]]]) -> str:
    lines = ["| split | frames/s | " + " | ".join(f"μ_all, {d}" for d in accuracy) + " |"]
    lines.append("|---|---|" + "---|" * len(accuracy))
    for at in SPLITS:
        cells = [
            f"{statistics.mean(by[at]):.3f} ({', '.join(f'{v:.3f}' for v in sorted(by[at]))})"
            for by in accuracy.values()
        ]
        lines.append(f"| `{at}` | {speed[at]:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(speed: dict[str, float], accuracy: dict[str, dict[str, list[float]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(accuracy), figsize=(8.4, 3.4), sharex=True, layout="constrained"
    )
    x = [speed[at] for at in SPLITS]
    for axes, (data, by) in zip(panels, accuracy.items(), strict=True):
        y = [100 * statistics.mean(by[at]) for at in SPLITS]
        axes.plot(x, y, marker="o", color="#0072b2")
        for at, a in zip(SPLITS, x, strict=True):
            values = [100 * v for v in by[at]]
            axes.plot([a] * len(values), values, ".", color="0.55", zorder=0)
        for at, a, b in zip(SPLITS, x, y, strict=True):
            axes.annotate(at, (a, b), textcoords="offset points", xytext=(6, 6), fontsize=9)
        axes.axvline(30, color="0.6", linestyle=":", linewidth=1)
        axes.set_xscale("log")
        axes.margins(x=0.25, y=0.25)
        axes.set_title(data)
        axes.set_xlabel("frames per second")
    panels[0].set_ylabel("μ_all on validation videos, %")
    figure.savefig(path, dpi=150)


def main() -> None:
    accuracy = accuracies(Path(sys.argv[1]))
    speed = frames_per_second()
    plot(speed, accuracy, Path(sys.argv[2]))
    print(table(speed, accuracy))


if __name__ == "__main__":
    main()
