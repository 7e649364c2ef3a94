"""Ordinary training on everything at once, as the protocol prescribes it for upper bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from verse.kernels.losses import cross_entropy
from verse.kernels.randomness import Random
from verse.learners.base import require_settings
from verse.network.net import Net
from verse.network.plastic import Plastic
from verse.settings import BatchSize, Clip, Momentum, Rate, WeightDecay, about
from verse.types import BadData, BadSetting

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Progress: TypeAlias = Callable[[int, float], None]
"""Called after every epoch with (epochs done, its mean training loss)."""

PATIENCE = 3  # epochs over which the loss is compared
PIECE = 32  # samples whose gradient is computed at a time
FLAT = 0.001  # less progress than this share of log(classes) in that time is none


Epochs = Annotated[int, about("epochs, at least", least=1)]
MaxEpochs = Annotated[int, about("epochs, at most", least=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRecipe:
    """How to train: plain SGD until the training loss is flat, never looking at test data."""

    lr: Rate = 0.01
    momentum: Momentum = 0.9
    weight_decay: WeightDecay = 1e-4
    batch: BatchSize = 256
    epochs: Epochs = 10
    max_epochs: MaxEpochs = 60
    clip: Clip = 1.0

    def __post_init__(self) -> None:
        require_settings(TrainingRecipe, asdict(self))


@dataclass(frozen=True, slots=True)
class Log:
    """What a training did: the label of each output, the mean loss of each epoch."""

    classes: tuple[int, ...]
    losses: tuple[float, ...]
    flat: bool


def train_offline(
    F: Plastic,
    Z: Any,
    y: Any,
    *,
    seed: int,
    recipe: TrainingRecipe | None = None,
    progress: Progress | None = None,
) -> tuple[Net, Log]:
    """F from its start weights, trained on features Z [n, \\*z_shape] with labels y [n].

    ``Z`` is anything that can be indexed by an array of rows, a memory-mapped file for example;
    only a batch of it is read at a time. Outputs are the labels in sorted order: ``Log.classes``.

    >>> from verse.network.plastic import Head
    >>> F = Plastic(torch.nn.Identity(), Head(2), z_shape=(2,))
    >>> net, log = train_offline(F, torch.eye(2).repeat(8, 1), [3, 7] * 8, seed=0)
    >>> log.classes, predict_labels(net, log, torch.eye(2)).tolist()
    ((3, 7), [3, 7])
    """
    labels = np.asarray(y)
    if len(labels) == 0 or len(labels) != len(Z):
        raise BadData(f"{len(Z)} features and {len(labels)} labels: both must be the same, not 0")
    classes, outputs = np.unique(labels, return_inverse=True)

    def rows(index: Ints) -> Tensor:
        return F.stored(torch.as_tensor(Z[index]))

    net, losses, flat = train_on(
        F,
        rows,
        np.asarray(outputs, np.int64),
        len(classes),
        seed,
        recipe or TrainingRecipe(),
        progress,
    )
    return net, Log(tuple(int(c) for c in classes), losses, flat)


def predict_labels(net: Net, log: Log, Z: Any, *, batch: int = 256) -> Ints:
    """The label of every feature in Z."""
    found = [
        net.scores(
            net.module.stored(torch.as_tensor(Z[np.arange(start, min(start + batch, len(Z)))]))
        )
        .argmax(1)
        .cpu()
        .numpy()
        for start in range(0, len(Z), batch)
    ]
    labels: Ints = np.asarray(log.classes, np.int64)[np.concatenate(found)]
    return labels


def train_on(
    F: Plastic,
    rows: Callable[[Ints], Tensor],
    outputs: Ints,
    classes: int,
    seed: int,
    recipe: TrainingRecipe,
    progress: Progress | None,
) -> tuple[Net, tuple[float, ...], bool]:
    """SGD with momentum from the start weights; ``rows`` reads samples in ascending order."""
    random = Random(seed, 2)
    net = _fresh(F, classes, random)
    y = torch.from_numpy(outputs).to(net.data.device)
    n, losses = len(outputs), list[float]()
    velocity = torch.zeros_like(net.data)
    batches = max(1, round(n / recipe.batch))  # of about equal size: no batch of two or three
    flat = classes == 1  # a single class leaves nothing to learn
    while not flat and len(losses) < max(recipe.epochs, recipe.max_epochs):
        total = 0.0
        for part in np.array_split(random.numpy.permutation(n), batches):
            index = np.sort(part)
            value, g = _gradient(net, rows(index), y[torch.from_numpy(index)])
            norm = float(torch.linalg.vector_norm(g))
            if not math.isfinite(norm):
                raise BadSetting(f"offline training diverged: lower lr ({recipe.lr}) or set clip")
            scale = 1.0 if recipe.clip is None else min(1.0, recipe.clip / max(norm, 1e-12))
            velocity.mul_(recipe.momentum).add_(g, alpha=scale)
            velocity.add_(net.data, alpha=recipe.weight_decay)
            net.data.sub_(velocity, alpha=recipe.lr)
            net.sync()
            total += value * len(index)
        losses.append(total / n)
        flat = len(losses) >= recipe.epochs and is_flat(losses, classes)
        if progress is not None:
            progress(len(losses), losses[-1])
    return net, tuple(losses), flat


def _gradient(net: Net, Z: Tensor, y: Tensor) -> tuple[float, Tensor]:
    """Mean loss of a batch and its gradient, in pieces that stay in the cache.

    Where a batch is normalised by its own statistics it is one piece.
    """
    piece = len(y) if net.trains_norms else PIECE
    total, gradient = 0.0, torch.zeros_like(net.data)
    for z, labels in zip(torch.split(Z, piece), torch.split(y, piece), strict=True):
        value, g = net.gradient(z, cross_entropy(labels))
        share = len(labels) / len(y)
        total += share * float(value)
        gradient.add_(g, alpha=share)
    return total, gradient


def _fresh(F: Plastic, classes: int, random: Random) -> Net:
    """The start weights with a new head, whose rows start as those of every learner do."""
    net = Net(F)
    net.grow_to(classes)
    head, bound = net.layout.views(net.data), F.head.d**-0.5
    head["head.weight"][:classes] = random.uniform_tensor((classes, F.head.d), -bound, bound).to(
        net.data.device
    )
    head["head.bias"][:classes] = random.uniform_tensor((classes,), -bound, bound).to(
        net.data.device
    )
    net.sync()
    return net


def is_flat(losses: list[float], classes: int) -> bool:
    """Has the best of the last epochs hardly improved on the best before them?

    >>> is_flat([1.0, 0.5, 0.2, 0.1], 8), is_flat([0.2, 0.1, 0.1, 0.1, 0.1], 8)
    (False, True)
    """
    if len(losses) <= PATIENCE:
        return False
    gain = min(losses[:-PATIENCE]) - min(losses[-PATIENCE:])
    return gain < FLAT * math.log(max(2, classes))
