"""Offline at every test event: the upper bounds that Ω divides by, made once per set of classes.

A fresh F from the same start weights learns all training data of the classes under test, in any
order and for many epochs; beside it stand classifiers in closed form. So iid and instance streams
need one of each, class orderings one per set of seen classes, which they share because they show
classes in the same order for the same seed. What is made is kept on disk by (data set, backbone,
settings of F, classes, seed).
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from verse import metrics
from verse.evaluate import Ints, Samples
from verse.experiments.closed_forms import Sums, iterate_features
from verse.experiments.prepare import Prepared, Stage, Watch
from verse.experiments.reference import (
    SGD,
    OfflineChoice,
    choose_offline,
    file_of,
    recipe,
    reference_key,
)
from verse.experiments.result import Bound
from verse.experiments.run import Run
from verse.learners.shared.training import predict_labels, train_offline
from verse.paths import cache_directory, write_atomic
from verse.streams import Schedule


class WeakOffline(UserWarning):
    """A closed form is clearly better than the reference: Ω would flatter every learner."""


def bounds(ready: Prepared, schedule: Schedule, run: Run, watch: Watch) -> list[Bound]:
    """One bound per event of the schedule."""
    sets = [tuple(sorted(event.classes)) for event in schedule.events]
    known = {classes: _read(_file(ready, run, classes)) for classes in dict.fromkeys(sets)}
    if any(bound is None for bound in known.values()):
        choice = choose_offline(ready, run, watch)
        forms = ClosedForms(ready, choice)
        for number, (classes, bound) in enumerate(known.items(), 1):
            watch(Stage("Offline", number, len(known)))
            if bound is None:
                known[classes] = _make(ready, run, classes, choice, forms, watch)
    found = [bound for classes in sets if (bound := known[classes]) is not None]
    weak = [t for t, bound in enumerate(found, 1) if not bound.sound]
    if weak:
        worst = found[weak[0] - 1]
        warnings.warn(
            f"the reference ({worst.best}, {worst.reference:.3f}) is behind a closed form "
            f"({max(worst.closed.values()):.3f}) at event {weak[0]}: Ω is too high there",
            WeakOffline,
            stacklevel=2,
        )
    return found


def files(ready: Prepared, schedule: Schedule, run: Run) -> list[Path]:
    """The files that hold the bounds of the schedule, to send them to another machine."""
    sets = [tuple(sorted(event.classes)) for event in schedule.events]
    return [file_of(ready, run), *(_file(ready, run, classes) for classes in dict.fromkeys(sets))]


class ClosedForms:
    """All closed forms on the training data of growing sets of classes."""

    def __init__(self, ready: Prepared, choice: OfflineChoice) -> None:
        self.ready, self.choice = ready, choice
        self._sums = {name: Sums() for name in choice.shrinkage}
        self._test = {
            name: torch.cat([E for E, _ in iterate_features(ready.backbone.F, ready.test, name)])
            for name in choice.shrinkage
        }

    def answers(self, classes: tuple[int, ...]) -> dict[str, Ints]:
        """Closed form → its answers on the test frames of these classes."""
        rows = torch.from_numpy(np.isin(self.ready.test.y, classes))
        found: dict[str, Ints] = {}
        for name, shrinkage in self.choice.shrinkage.items():
            if not set(self._sums[name].counts) <= set(classes):
                self._sums[name] = Sums()
            new = [k for k in classes if k not in self._sums[name].counts]
            for E, y in iterate_features(
                self.ready.backbone.F, of_classes(self.ready.train, new), name
            ):
                self._sums[name].add(E, y)
            E = self._test[name][rows]
            found[f"lda {name}"] = self._sums[name].lda(E, shrinkage)
            found[f"ridge {name}"] = self._sums[name].ridge(E)
        return found


def of_classes(samples: Samples, classes: tuple[int, ...] | list[int]) -> Samples:
    """The samples of these classes."""
    return samples.take(np.flatnonzero(np.isin(samples.y, classes)))


def _make(
    ready: Prepared,
    run: Run,
    classes: tuple[int, ...],
    choice: OfflineChoice,
    forms: ClosedForms,
    watch: Watch,
) -> Bound:
    train, test = of_classes(ready.train, classes), of_classes(ready.test, classes)
    how = recipe(len(train), choice)
    most = how.max_epochs

    def epoch(done: int, loss: float) -> None:
        watch(Stage(f"Offline, {len(classes)} classes, loss {loss:.3f}, epoch", done, most))

    net, log = train_offline(
        ready.backbone.F,
        train,
        train.y,
        seed=run.seed,
        recipe=how,
        progress=epoch,
    )
    answered = forms.answers(classes)
    sgd = predict_labels(net, log, test)
    best = sgd if choice.best == SGD else answered[choice.best]
    bound = Bound(
        accuracy=metrics.accuracy(sgd, test.y),
        by_video=_by_video(sgd, test),
        epochs=len(log.losses),
        flat=log.flat,
        closed={name: metrics.accuracy(given, test.y) for name, given in answered.items()},
        best=choice.best,
        best_by_video=_by_video(best, test),
    )
    file = _file(ready, run, classes)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, json.dumps(asdict(bound)).encode())
    return bound


def _by_video(answered: Ints, test: Samples) -> list[list[int]]:
    rows: list[list[int]] = np.stack(metrics.by_video(answered, test.y, test.videos), 1).tolist()
    return rows


def _file(ready: Prepared, run: Run, classes: tuple[int, ...]) -> Path:
    return cache_directory() / "offline" / f"{reference_key(ready, run, classes, run.seed)}.json"


def _read(file: Path) -> Bound | None:
    try:
        return Bound(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError):  # absent or damaged: make it again
        return None
