"""Offline at every test event: the upper bound that Ω divides by, trained once per set of classes.

A fresh F from the same start weights learns all training data of the classes under test, in any
order and for many epochs. So iid and instance streams need one model, class orderings one per set
of seen classes, which they share because they show classes in the same order for the same seed.
What is trained is kept on disk by (data set, backbone, settings of F, classes, seed).
"""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np

from verse import metrics
from verse.backbones.weights import cache_directory
from verse.checkpoint import write_atomic
from verse.experiments.gate import closed_forms
from verse.experiments.prepare import Prepared, Stage, Watch
from verse.experiments.result import Bound
from verse.experiments.run import Run
from verse.learners.training import answers, train_offline
from verse.streams import Schedule

VERSION = 2  # a change of how Offline is trained is a new number


class WeakOffline(UserWarning):
    """Offline falls behind a closed-form classifier: Ω would flatter every learner."""


def bounds(ready: Prepared, schedule: Schedule, run: Run, watch: Watch) -> list[Bound]:
    """One bound per event of the schedule."""
    found: list[Bound] = []
    known: dict[tuple[int, ...], Bound] = {}
    for number, event in enumerate(schedule.events, 1):
        classes = tuple(sorted(event.classes))
        if classes not in known:
            file = _file(ready, run, classes)
            known[classes] = _read(file) or _train(ready, run, classes, file, watch)
        found.append(known[classes])
        watch(Stage("Offline", number, len(schedule)))
    weak = [t for t, bound in enumerate(found, 1) if not bound.sound]
    if weak:
        worst = found[weak[0] - 1]
        warnings.warn(
            f"Offline is behind ridge regression and LDA at event {weak[0]} ({worst.accuracy:.3f} "
            f"against {worst.ridge:.3f} and {worst.lda:.3f}): Ω is too high here",
            WeakOffline,
            stacklevel=2,
        )
    return found


def files(ready: Prepared, schedule: Schedule, run: Run) -> list[Path]:
    """Where the bounds of the schedule are kept, for those who carry them to another machine."""
    return [_file(ready, run, tuple(sorted(event.classes))) for event in schedule.events]


def _train(ready: Prepared, run: Run, classes: tuple[int, ...], file: Path, watch: Watch) -> Bound:
    train = ready.train.take(np.flatnonzero(np.isin(ready.train.y, classes)))
    test = ready.test.take(np.flatnonzero(np.isin(ready.test.y, classes)))

    def epoch(done: int, loss: float) -> None:
        watch(Stage(f"Offline, {len(classes)} classes, loss {loss:.3f}, epoch", done, 0))

    net, log = train_offline(ready.backbone.F, train, train.y, seed=run.seed, progress=epoch)
    answered = answers(net, log, test)
    ridge, lda = closed_forms(ready.backbone.F, train, test)
    bound = Bound(
        accuracy=metrics.accuracy(answered, test.y),
        ridge=ridge,
        lda=lda,
        epochs=len(log.losses),
        flat=log.flat,
        by_video=np.stack(metrics.by_video(answered, test.y, test.videos), 1).tolist(),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, json.dumps(asdict(bound)).encode())
    return bound


def _file(ready: Prepared, run: Run, classes: tuple[int, ...]) -> Path:
    F = ready.backbone.F
    facts = [
        *(VERSION, ready.fingerprint, ready.backbone.key, ready.backbone.G.engine),
        *(run.features, F.precision, F.batchnorm, classes, run.seed),
    ]
    name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    return cache_directory() / "offline" / f"{name}.json"


def _read(file: Path) -> Bound | None:
    try:
        return Bound(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):  # absent or damaged: train it again
        return None
