"""The statistics of verse-joint where what is asked differs from what was shown; closed form.

    VERSE_DATA=… python benchmarks/default_shift.py run benchmarks/default_shift.jsonl [SET …]
    python benchmarks/default_shift.py show benchmarks/default_shift.jsonl

Validation frames as in default_choice.py, and with them: pictures turned by 90°, only a part of the
views, the track or the sessions shown and the other part asked, and short streams (a part of the
classes or frames). Every line has the accuracy of each variant: "J s ε" is the covariance
of the grid with differences times s, "P ε" that of the averages, "+ a P ε" both with the say a of
the averages; "f" is a fixed ε, "a" one that is larger while there are few samples.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from default_choice import EVERY, SETS
from PIL import Image
from torch import Tensor

from verse import streams
from verse.experiments.prepare import Prepared, prepare
from verse.experiments.run import Run
from verse.kernels.joint_statistics import JointStatistics
from verse.learners.shared.grid_features import GridFeatures

SEEDS = (100, 101)
TURNED = ("eth80", "icub_camera", "gtsrb")
SHARES = {"f1": 0.1, "a1": 0.1, "a15": 0.15, "a3": 0.3, "f5": 0.5}  # ε, or ε₀ of one that adapts
GRIDS = {"J.5": ("f1", "a1", "a15", "a3", "f5"), "J1": ("f1", "a1", "a3"), "P": ("f1", "a15", "f5")}
BOTH = [(j, g, a) for j in ("f1", "a1") for g in ("a3", "f5") for a in (0.25, 0.4)]


class Job(NamedTuple):
    """What is shown and what is asked."""

    name: str
    z: Tensor
    y: Tensor
    z_asked: Tensor
    y_asked: Tensor


class _Fixed(JointStatistics):
    """ε that does not adapt."""

    @property
    def share(self) -> float:
        return self.shrinkage


def jobs(name: str, ready: Prepared) -> Iterator[Job]:
    train, test, source = ready.train, ready.test, ready.dataset
    z, asked = (side[np.arange(len(side))].float() for side in (train, test))
    y, y_asked = torch.tensor(train.y), torch.tensor(test.y)
    frames, asked_frames = source.train.frames, source.test.frames
    yield Job("val", z, y, asked, y_asked)
    if name in TURNED:
        turned = [Image.fromarray(np.rot90(source.test.read(i)).copy()) for i in range(len(test))]
        parts = [ready.backbone.G(turned[i : i + 32]) for i in range(0, len(turned), 32)]
        yield Job("rot", z, y, torch.cat(parts).float(), y_asked)
    for seed in SEEDS:
        for order in ("class-iid", "iid"):
            at = streams.order(order, train.y, train.videos, frames, seed)
            events = streams.Schedule.of(order, train.y[at], every=EVERY.get(name, 5)).events
            for event in events[1:-1:2] if order == "class-iid" else (events[1], events[4]):
                shown, some = at[: event.after], event.select(test.y)
                short = order.removesuffix("-iid")
                yield Job(short, z[shown], y[shown], asked[some], y_asked[some])
    first = np.isin(train.videos, [train.videos[train.y == k].min() for k in np.unique(train.y)])
    if name == "asl":
        for tag, here in (("session1->2", first), ("session2->1", ~first)):
            yield Job(tag, z[here], y[here], z[~here], y[~here])
    if name == "icub_camera":
        yield Job("first arc->val", z[first], y[first], asked, y_asked)
    if name in ("eth80", "gtsrb"):
        early, late = frames < np.median(frames), asked_frames >= np.median(frames)
        yield Job("early->late", z[early], y[early], asked[late], y_asked[late])
        yield Job("late->early", z[~early], y[~early], asked[~late], y_asked[~late])


def evidence(job: Job, s: float, kind: str) -> tuple[Tensor, Tensor]:
    """Scores of the frames asked, and the classes of their columns."""
    features = GridFeatures(tuple(job.z.shape[1:]), s=s)
    some = slice(None) if s else slice(None, None, features.positions)
    shown, asked = features(job.z)[:, some], features(job.z_asked)[:, some]
    classes, outputs = torch.unique(job.y, return_inverse=True)
    of = JointStatistics if kind.startswith("a") else _Fixed
    known = of(shown.shape[1], torch.device("cpu"), shrinkage=SHARES[kind])
    for k in range(len(classes)):
        known.add_class(k + 1, torch.zeros(0))
    for e, k in zip(shown, outputs.tolist(), strict=True):
        known.add(e, k)
    return known.evidence(asked), classes


def variants(job: Job) -> dict[str, float]:
    scales = {"J.5": 0.5, "J1": 1.0, "P": 0.0}
    wanted = {(name, kind) for name, kinds in GRIDS.items() for kind in kinds} | {("P", "a3")}
    scores = {key: evidence(job, scales[key[0]], key[1]) for key in sorted(wanted)}
    total = {
        f"{name} {kind}": scores[name, kind][0] for name, kinds in GRIDS.items() for kind in kinds
    }
    for name in ("J.5", "J1"):
        for j, g, a in BOTH:
            both = torch.lerp(scores[name, j][0], scores["P", g][0], a)
            total[f"{name} {j} + {a} P {g}"] = both
    classes = scores["P", "a3"][1]
    right = {name: classes[score.argmax(1)] == job.y_asked for name, score in total.items()}
    return {name: round(float(found.float().mean()), 4) for name, found in right.items()}


def run(path: Path, names: list[str]) -> None:
    with path.open("a") as file:
        for name in names:
            for job in jobs(name, prepare(Run(f"folder:{name}", **SETS[name]))):
                line = {"set": name, "job": job.name, "accuracy": variants(job)}
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
                file.flush()


def show(path: Path) -> None:
    found: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        held = json.loads(line)
        found[held["set"], held["job"]].append(held["accuracy"])
    for i, (name, job) in enumerate(found):
        print(f"{i:3d} {name} {job}")
    print(" " * 24, *(f"{i:5d}" for i in range(len(found))))
    for variant in next(iter(found.values()))[0]:
        means = (np.mean([row[variant] for row in rows]) for rows in found.values())
        print(f"{variant:24s}", *(f"{mean:.3f}" for mean in means))


if __name__ == "__main__":
    command, file = sys.argv[1], Path(sys.argv[2])
    run(file, sys.argv[3:] or list(SETS)) if command == "run" else show(file)
