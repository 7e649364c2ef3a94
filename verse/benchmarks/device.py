"""G and the VERSE step on another device, against the CPU of the same machine.

``verse bench --device cuda`` (or ``mps``) is for somebody with a GPU to run once: the machines that
this project is developed on have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from verse import backbones
from verse.benchmarks.cases import SPLITS, features, pictures, verse_learner
from verse.benchmarks.timing import alternate, ratio, summary

BATCH = 32


def measure(case: str, *, device: str, rounds: int) -> dict[str, Any]:
    """Milliseconds there, and how many times faster than the CPU in the same round."""
    name, at = SPLITS[case]
    files = pictures(BATCH)
    works: dict[str, Callable[[], object]] = {}
    found: list[Tensor] = []
    for place in ("cpu", device):
        backbone = backbones.build(name, at=at, weights="random", device=place)
        learner, z = verse_learner(backbone.F, features(backbone.F)), features(backbone.F, 1)[0]
        images = [backbone.G.preprocess(file) for file in files]
        found.append(backbone.G(images[:2]))
        works[f"G {place}"] = lambda G=backbone.G, x=images[:1]: G(x)  # type: ignore[misc]
        works[f"G of {BATCH} {place}"] = lambda G=backbone.G, x=images: G(x)  # type: ignore[misc]
        works[f"step {place}"] = lambda f=learner, z=z: _step(f, z, device)  # type: ignore[misc]
    times = alternate(works, rounds)
    told: dict[str, Any] = {
        "features_differ_by": float((found[0] - found[1]).abs().max() / found[0].abs().max())
    }
    for what in ("G", f"G of {BATCH}", "step"):
        key = what.replace(" ", "_")
        told[f"{key}_ms"] = summary(times[f"{what} {device}"])["median_ms"]
        told[f"{key}_speedup_vs_cpu"] = ratio(times[f"{what} cpu"], times[f"{what} {device}"])
    return told


def _step(learner: Any, z: Tensor, device: str) -> None:
    """One step, until the device has done it."""
    learner.learn_one(z, 0)
    if device == "cuda":
        torch.cuda.synchronize()
    elif device == "mps":
        torch.mps.synchronize()
