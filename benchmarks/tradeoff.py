"""How deep should F reach? Accuracy on validation videos against frames per second, per split.

    python benchmarks/tradeoff.py docs/tradeoff.json docs/tradeoff.png

needs the real data (VERSE_DATA). Accuracy: VERSE with its defaults, class-instance, validation
videos taken out of training, so that the choice of a default never sees a test video. Frames per
second: measured in turns, one frame of every split after another.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

SPLITS = ("fc", "head", "blocks.15", "blocks.14")
DATA = {
    "eth80": ["--holdout", "last:3", "--validation", "last:2", "--thin", "2"],
    "gtsrb": ["--holdout", "last:3", "--validation", "last:1", "--thin", "3", "--every", "5"],
}
SEEDS = (100, 101)


def accuracy(data: str, at: str, seed: int) -> float:
    """μ_all of one run."""
    answer = subprocess.run(
        [sys.executable, "-m", "verse.cli", "run", f"folder:{data}", *DATA[data], "--at", at,
         "--seed", str(seed), "--no-offline", "--threads", "1", "--json", "--out",
         f"runs/tradeoff/{data}-{at}-{seed}.json"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found = json.loads(answer.stdout)
    for key in ("mu_all", "mu"):
        if key in found:
            return float(found[key])
    return float(found["metrics"]["mu_all"])


def frames_per_second(rounds: int = 25) -> dict[str, float]:
    from frame import classifier_with_memory, pictures
    from timing import alternate

    from verse import backbones

    files = pictures()
    classifiers = {
        at: classifier_with_memory(backbones.build(at=at, weights="random"), files) for at in SPLITS
    }
    works = {
        at: (lambda c=c: c.learn_one(files[0], 0))  # type: ignore[misc]
        for at, c in classifiers.items()
    }
    return {at: 1 / statistics.median(seconds) for at, seconds in alternate(works, rounds).items()}


def plot(results: dict[str, dict[str, float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    for data, marker in zip(DATA, "os", strict=True):
        x = [results[at]["frames_per_second"] for at in SPLITS]
        y = [100 * results[at][data] for at in SPLITS]
        axes.plot(x, y, marker=marker, label=data)
        for at, a, b in zip(SPLITS, x, y, strict=True):
            axes.annotate(at, (a, b), textcoords="offset points", xytext=(4, 5), fontsize=8)
    axes.axvline(30, color="0.6", linestyle=":", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("frames per second (decode + G + VERSE step)")
    axes.set_ylabel("μ_all on validation videos, %")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    target, picture = Path(sys.argv[1]), Path(sys.argv[2])
    speed = frames_per_second()
    results = {
        at: {
            "frames_per_second": speed[at],
            **{d: statistics.mean(accuracy(d, at, s) for s in SEEDS) for d in DATA},
        }
        for at in SPLITS
    }
    target.write_text(json.dumps(results, indent=2) + "\n")
    plot(results, picture)


if __name__ == "__main__":
    main()
