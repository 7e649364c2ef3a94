"""What Offline is, chosen once for each data set and backbone on held-out training videos.

The learning rate and weight decay of SGD, the shrinkage of discriminant analysis, and which of all
is the reference that Ω divides by. Test frames are never looked at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock

from verse import metrics
from verse.evaluate import Ints, Samples
from verse.experiments.closed_forms import SHRINKAGES, Sums, features_of, iterate_features
from verse.experiments.prepare import Prepared, Stage, Watch
from verse.experiments.run import Run
from verse.learners.shared.training import TrainingRecipe, predict_labels, train_offline
from verse.paths import cache_directory, write_atomic
from verse.types import BadSetting

VERSION = 4  # a change of how references are chosen or trained is a new number
BATCH = 32
STEPS = 1000  # of SGD, at least
RATES = (0.01, 0.03, 0.1)
ALL_RATES = (0.001, 0.003, *RATES, 0.3, 1.0)  # while the best is at the edge of what was tried
DECAYS = (1e-4, 1e-3)
SHARE = 0.2  # of a class' training videos that are held out
SGD = "sgd"


@dataclass(frozen=True)
class OfflineChoice:
    """What was chosen, and the accuracy of each candidate on the held-out videos."""

    lr: float
    weight_decay: float
    shrinkage: dict[str, float]
    """Features → ε of discriminant analysis."""
    best: str
    """The reference: "sgd", or a closed form with its features, "lda grid"."""
    accuracy: dict[str, float]


def choose_offline(ready: Prepared, run: Run, watch: Watch) -> OfflineChoice:
    """The choice for what is prepared; kept on disk."""
    file = file_of(ready, run)
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):  # who comes second finds it made
        try:
            return OfflineChoice(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):  # absent or damaged: choose again
            choice = _choose(ready, *hold_out(ready.train), watch)
        write_atomic(file, json.dumps(asdict(choice)).encode())
        return choice


def reference_key(ready: Prepared, run: Run, *more: object) -> str:
    """A name for what follows from data, backbone and the settings of F."""
    F = ready.backbone.F
    facts = [
        *(VERSION, ready.fingerprint, ready.backbone.key, ready.backbone.G.engine),
        *(run.features, F.precision, F.batchnorm, *more),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def file_of(ready: Prepared, run: Run) -> Path:
    """The file that holds the choice, to send it to another machine."""
    return cache_directory() / "offline" / f"choice-{reference_key(ready, run)}.json"


def hold_out(train: Samples) -> tuple[Samples, Samples]:
    """(the rest, held out): the last videos of each class, or the last frames of an only one.

    >>> y = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    >>> rest, held = hold_out(Samples(torch.zeros(9, 2), y, np.array([0, 0, 1, 1, *[2] * 5])))
    >>> held.index.tolist()
    [2, 3, 8]
    """
    held = np.zeros(len(train), bool)
    for label in np.unique(train.y):
        mine = np.flatnonzero(train.y == label)
        videos = np.unique(train.videos[mine])
        if len(videos) > 1:
            last = videos[-max(1, round(SHARE * len(videos))) :]
            held[mine[np.isin(train.videos[mine], last)]] = True
        elif len(mine) > 1:
            held[mine[-max(1, round(SHARE * len(mine))) :]] = True
    return train.take(np.flatnonzero(~held)), train.take(np.flatnonzero(held))


def recipe(samples: int, choice: OfflineChoice) -> TrainingRecipe:
    """How SGD trains on ``samples``: at least ``STEPS`` steps, then until the loss is flat."""
    epochs = max(2, -(-STEPS // max(1, round(samples / BATCH))))
    return TrainingRecipe(
        lr=choice.lr,
        weight_decay=choice.weight_decay,
        batch=BATCH,
        epochs=epochs,
        max_epochs=max(epochs, 60),
        clip=None,
    )


def _choose(ready: Prepared, rest: Samples, held: Samples, watch: Watch) -> OfflineChoice:
    F, found = ready.backbone.F, dict[str, float]()
    shrinkage: dict[str, float] = {}
    for name in features_of(F):
        watch(Stage(f"closed forms, {name}", 0, 0))
        sums = Sums()
        for E, y in iterate_features(F, rest, name):
            sums.add(E, y)
        E_held = torch.cat([E for E, _ in iterate_features(F, held, name)])
        by = {e: metrics.accuracy(sums.lda(E_held, e), held.y) for e in SHRINKAGES}
        shrinkage[name] = max(by, key=by.__getitem__)
        found[f"lda {name}"] = by[shrinkage[name]]
        found[f"ridge {name}"] = metrics.accuracy(sums.ridge(E_held), held.y)
    trials: dict[tuple[float, float], float] = {}

    def attempt(lr: float) -> None:
        for decay in DECAYS:
            watch(Stage("Offline, choosing its rate", len(trials), 0))
            trials[lr, decay] = _trial(ready, rest, held, OfflineChoice(lr, decay, {}, SGD, {}))

    lr, decay = search_rate(attempt, trials)
    found = {SGD: trials[lr, decay]} | found  # of equals the network
    return OfflineChoice(lr, decay, shrinkage, max(found, key=found.__getitem__), found)


def search_rate(
    attempt: Callable[[float], None], trials: Mapping[tuple[float, float], float]
) -> tuple[float, float]:
    """The best (rate, decay): the usual rates first, then further while the best is at an edge.

    >>> trials = {}
    >>> search_rate(lambda lr: trials.update({(lr, 0.0): -abs(lr - 0.3)}), trials)
    (0.3, 0.0)
    >>> sorted(lr for lr, _ in trials)  # up to the first that is no better
    [0.01, 0.03, 0.1, 0.3, 1.0]
    """
    for lr in RATES:
        attempt(lr)
    while True:
        best = max(trials, key=trials.__getitem__)
        tried = sorted({lr for lr, _ in trials})
        place = ALL_RATES.index(best[0])
        step = (best[0] == tried[-1]) - (best[0] == tried[0])
        if not step or not 0 <= place + step < len(ALL_RATES):
            return best
        attempt(ALL_RATES[place + step])


def _trial(ready: Prepared, rest: Samples, held: Samples, choice: OfflineChoice) -> float:
    try:
        net, log = train_offline(
            ready.backbone.F, rest, rest.y, seed=0, recipe=recipe(len(rest), choice)
        )
    except BadSetting:  # it diverged
        return 0.0
    answered: Ints = predict_labels(net, log, held)
    return metrics.accuracy(answered, held.y)
