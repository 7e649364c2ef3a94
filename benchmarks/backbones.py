"""Which backbone should be the default? Accuracy on validation videos, milliseconds, megabytes.

    python benchmarks/backbones.py features FOLDER            # needs VERSE_DATA; resumes
    python benchmarks/backbones.py table FOLDER [PLOT.png]    # accuracy, and time measured now

Every backbone gives its last map pooled to a 2 × 2 grid. Test videos are never read. Learners see
each training frame once, class after class. Times are taken in turns, one frame of each backbone
after another. Prints the table as Markdown.
"""

from __future__ import annotations

import json
import statistics
import sys
import zlib
from collections.abc import Callable
from math import ceil
from pathlib import Path

import numpy as np
import torch
from torch import nn

from verse import backbones, learners, memory
from verse.backbones.base import plastic
from verse.backbones.grid import Scale
from verse.benchmarks.timing import alternate
from verse.configuration import DEFAULT_LEARNER
from verse.datasets import folder
from verse.datasets.base import Frames

# data set → (rule that holds out the test videos, frames taken, validation videos of n)
SETS: dict[str, tuple[str, int, Callable[[int], int]]] = {
    "eth80": ("last:3", 2, lambda n: 2),
    "gtsrb": ("last:3", 3, lambda n: 1),
    "icub_camera": ("arcs:6:3,6", 2, lambda n: 1),
    "asl": ("last:1", 60, lambda n: 1),
    "gtsrb_full": ("last:25%", 15, lambda n: ceil(n / 5)),
}
MAPS = {  # backbone → the split behind its last map
    "efficientnet-lite0": "head",
    "efficientnet-lite1": "head",
    "efficientnet-lite2": "head",
    "resnet18": "avgpool",
}
GRID = 2
BATCH = 16
ROUNDS = 40


def last_videos(frames: Frames, count: Callable[[int], int]) -> np.ndarray:
    """Which frames belong to the last videos of their class."""
    chosen = np.zeros(len(frames), bool)
    for label in np.unique(frames.labels):
        videos = np.unique(frames.videos[frames.labels == label])
        chosen |= np.isin(frames.videos, videos[len(videos) - count(len(videos)) :])
    return chosen


def frames_of(data: Path, name: str) -> tuple[Frames, np.ndarray]:
    """The training frames of a data set, and which of them are for validation."""
    holdout, every, count = SETS[name]
    frames = folder.load(data / name, holdout).train
    frames = frames.thin(every)
    return frames, last_videos(frames, count)


def weights_of(name: str, weights: Path | None) -> Path | None:
    if name != "resnet18" or weights is None:
        return None
    return weights / "resnet18-imagenet1k-v1.safetensors"


def compute_features(data: Path, weights: Path | None, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    todo = [(s, b) for s in SETS for b in MAPS if not (out / f"{s}-{b}.npz").exists()]
    for set_name, name in todo:
        frames, validation = frames_of(data, set_name)
        G = backbones.build(name, at=MAPS[name], weights=weights_of(name, weights), threads=1).G
        grids = []
        for start in range(0, len(frames), BATCH):
            images = [frames.read(i) for i in range(start, min(start + BATCH, len(frames)))]
            grids.append(torch.nn.functional.adaptive_avg_pool2d(G(images), GRID).numpy())
        content = {"z": np.concatenate(grids), "y": frames.labels, "video": frames.videos}
        part = out / f"{set_name}-{name}.part.npz"
        np.savez(part, **content, validation=validation)
        part.rename(out / f"{set_name}-{name}.npz")
        print(f"{set_name} {name}: {len(frames)} frames", flush=True)


def accuracy(file: Path, title: str, learner: str, seed: int, **settings: object) -> float:
    """Final accuracy on the validation videos, class after class, each frame once."""
    stored = np.load(file)
    z, y = torch.from_numpy(stored["z"]), stored["y"]
    z = Scale()(z if title.endswith("grid") else z.mean((2, 3), keepdim=True))
    training, validation = ~stored["validation"], stored["validation"]
    order = np.random.default_rng((seed, zlib.crc32(file.name.split("-")[0].encode())))
    classes = order.permutation(np.unique(y))
    F = plastic(nn.Flatten(1), z[:1], precision="float32", batchnorm="frozen")
    store = memory.get("class-balanced")(per_class=20)
    method = learners.build(learner, F, store, seed=seed, **settings)
    for label in classes:
        rows = np.flatnonzero(training & (y == label))
        videos = order.permutation(np.unique(stored["video"][rows]))
        for video in videos:
            for row in rows[stored["video"][rows] == video]:
                method.learn_one(z[row], int(label))
    answers = method.predict_many(z[validation])
    return float(np.mean([a == b for a, b in zip(answers, y[validation], strict=True)]))


def milliseconds(weights: Path | None, threads: int) -> dict[str, float]:
    """Median time of decoded frame → grid, in turns."""
    image = np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8)
    works = {}
    for name, at in MAPS.items():
        G = backbones.build(name, at=at, weights=weights_of(name, weights), threads=threads).G
        works[name] = lambda G=G: G([image])
    times = alternate(works, ROUNDS, warm=5)
    return {name: 1e3 * statistics.median(seconds) for name, seconds in times.items()}


def megabytes(name: str, weights: Path | None) -> float:
    """Of the frozen network's weights."""
    backbone = backbones.build(name, at=MAPS[name], weights=weights_of(name, weights))
    return sum(t.nbytes for t in backbone.G.network.state_dict().values()) / 1e6  # type: ignore[attr-defined]


LEARNERS: dict[str, tuple[str, dict[str, object], tuple[int, ...]]] = {
    "slda, average": ("slda", {"shrinkage": 0.1}, (0,)),  # the order of frames does not matter
    "slda, grid": ("slda", {"shrinkage": 0.1}, (0,)),
    f"{DEFAULT_LEARNER}, grid": (DEFAULT_LEARNER, {}, (0,)),
}


def measure(out: Path, weights: Path | None) -> dict[str, dict[str, object]]:
    times = {threads: milliseconds(weights, threads) for threads in (1, 2)}
    result: dict[str, dict[str, object]] = {}
    for name in MAPS:
        scores = {
            title: {
                s: statistics.mean(
                    accuracy(out / f"{s}-{name}.npz", title, learner, seed, **settings)
                    for seed in seeds
                )
                for s in SETS
            }
            for title, (learner, settings, seeds) in LEARNERS.items()
        }
        result[name] = {
            "accuracy": scores,
            "milliseconds": {str(n): times[n][name] for n in times},
            "megabytes": megabytes(name, weights),
        }
        print(json.dumps({name: result[name]}), file=sys.stderr, flush=True)
    return result


def table(result: dict) -> str:
    lines = [
        f"| backbone | learner | {' | '.join(SETS)} | mean | worst | ms, 1 thread | ms, 2 | MB |"
    ]
    lines.append("|---|---|" + "--:|" * (len(SETS) + 5))
    for name, facts in result.items():
        for title, scores in facts["accuracy"].items():
            values = list(scores.values())
            cells = [f"{v:.3f}" for v in (*values, statistics.mean(values), min(values))]
            ms = [f"{t:.0f}" for t in facts["milliseconds"].values()]
            lines.append(
                "| " + " | ".join([name, title, *cells, *ms, f"{facts['megabytes']:.1f}"]) + " |"
            )
    return "\n".join(lines)


def plot(result: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    markers = dict(zip(LEARNERS, "osD^v", strict=False))
    for i, (name, facts) in enumerate(result.items()):
        x = facts["milliseconds"]["1"]
        heights = {t: statistics.mean(v.values()) for t, v in facts["accuracy"].items()}
        for title, y in heights.items():
            size = 8 * facts["megabytes"]
            label = title if i == 0 else None
            axes.scatter(x, y, s=size, marker=markers[title], color=f"C{i}", alpha=0.8, label=label)
        place = (x, max(heights.values()))
        axes.annotate(name, place, xytext=(0, 12), textcoords="offset points", ha="center")
    axes.legend(loc="lower right", fontsize=8)
    axes.set_xlabel("milliseconds from picture to features (one thread; lower is better)")
    axes.set_ylabel("accuracy on validation videos, mean of five sets")
    axes.set_title("Backbones: accuracy against time; area is the size of the weights", fontsize=10)
    axes.margins(x=0.15, y=0.15)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


def main() -> None:
    import os

    command, out = sys.argv[1], Path(sys.argv[2])
    weights = Path(os.environ["VERSE_WEIGHTS"]) if "VERSE_WEIGHTS" in os.environ else None
    if command == "features":
        compute_features(Path(os.environ["VERSE_DATA"]), weights, out)
        return
    result = measure(out, weights)
    (out / "measured.json").write_text(json.dumps(result, indent=1))
    print(table(result))
    if len(sys.argv) > 3:
        plot(result, Path(sys.argv[3]))


if __name__ == "__main__":
    main()
