"""Was it taught well? What each class lacks, which are confused, and which samples contradict.

Every remembered sample is answered as if neither it nor those taught together with it had ever
come: in closed form, by the statistics of the remembered samples and by a ridge regression on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from verse.types import Label

MOST_SAMPLES = 4000  # of all classes together; more are thinned evenly
ENOUGH = 0.9  # share of a class that is recognised with its neighbours left out
CONFUSED = 0.1  # share of a class that is taken for another one
FEW = 5  # samples of a class that tell too little
PARTS = 3  # of a hold
RIDGE = 0.5  # of the regression, in units of a sample's squared length


@dataclass(frozen=True, slots=True)
class ClassReport:
    """One class: how many samples were looked at, the share recognised, and what to do.

    ``advice`` is "enough", "show it more often", "show it from other sides" or "looks like X";
    ``accuracy`` is None where nothing can be left out.

    Parameters
    ----------
    label
        The class.
    samples
        How many were looked at.
    accuracy
        Share recognised with neighbours left out; None where nothing can be left out.
    looks_like
        The class that it is often taken for.
    advice
        "enough", "show it more often", "show it from other sides" or "looks like X".
    """

    label: Label
    samples: int
    accuracy: float | None
    looks_like: Label | None
    advice: str


@dataclass(frozen=True, slots=True)
class Confusion:
    """``share`` of the samples of one class are taken for another.

    Parameters
    ----------
    label
        The true class.
    taken_for
        The answer.
    share
        Of the samples of ``label``.
    """

    label: Label
    taken_for: Label
    share: float


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sample that looks more like ``looks_like`` than like its own class.

    ``score`` is how much better the other class fits, by two estimates without the sample, each in
    units of its usual size: above 0 it contradicts the others. ``seq`` is its sequence number where
    it is known.

    Parameters
    ----------
    label
        The class that it was taught as.
    looks_like
        The class that fits better.
    score
        How much better, above 0.
    seq
        Its sequence number, if known.
    """

    label: Label
    looks_like: Label
    score: float
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What ``diagnose`` finds; the suspects begin with the worst.

    Parameters
    ----------
    classes
        One entry for each class.
    confused
        Pairs of classes, the worst first.
    suspects
        Samples that look mislabelled, the worst first.
    """

    classes: tuple[ClassReport, ...]
    confused: tuple[Confusion, ...]
    suspects: tuple[Suspect, ...]

    def document(self) -> dict[str, Any]:
        """As plain JSON."""

        def plain(rows: Sequence[Any]) -> list[dict[str, Any]]:
            return [{name: getattr(row, name) for name in row.__slots__} for row in rows]

        return {
            "classes": plain(self.classes),
            "confused": plain(self.confused),
            "suspects": plain(self.suspects),
        }


def diagnose(
    E: Tensor,
    y: Sequence[int],
    labels: Sequence[Label],
    *,
    groups: Sequence[int] | None = None,
    seqs: Sequence[int | None] | None = None,
    most: int = 20,
) -> Report:
    """Look at samples [n, d] of the classes ``y``, named by ``labels``.

    Samples of one class with the same number in ``groups`` were taught together (frames of one
    hold): they are left out together, for neighbours in a film would vouch for each other.

    >>> random = np.random.default_rng(0)
    >>> y = [0, 1] * 20
    >>> E = torch.tensor(random.normal(size=(40, 3)) + 9 * np.eye(3)[y], dtype=torch.float32)
    >>> y[7] = 0  # a wrong label
    >>> diagnose(E, y, ["mug", "cup"]).suspects[0].looks_like
    'cup'
    """
    kept = np.unique(np.linspace(0, len(y) - 1, min(len(y), MOST_SAMPLES)).round().astype(int))
    if len(kept) == 0:
        return Report((), (), ())
    target = torch.tensor([y[i] for i in kept])
    rows = E[torch.from_numpy(kept)].float()
    alone = _Answers.without(rows, target, torch.arange(len(kept)), len(labels))
    doubt = _combine(alone, _ridge_margins(rows, target, len(labels)))
    together = alone
    if groups is not None:
        numbers = _number(target, [groups[i] for i in kept])
        together = _Answers.without(rows, target, numbers, len(labels))
    return Report(
        tuple(_advise(c, labels, target, together) for c in range(len(labels))),
        _confuse(labels, target, together),
        _suspect(labels, target, alone, doubt, kept, seqs, most),
    )


@dataclass(frozen=True)
class _Answers:
    """Squared distances of each sample to its own class (infinite if nothing is left of it) and to
    the nearest other one, and which that is."""

    own: Tensor
    nearest: Tensor
    which: Tensor

    @classmethod
    def without(cls, E: Tensor, y: Tensor, group: Tensor, classes: int) -> _Answers:
        """Each sample without its group."""
        gaps = _leave_out(E, y, group, classes)
        nearest, which = gaps.scatter(1, y[:, None], torch.inf).min(1)
        return cls(gaps.gather(1, y[:, None])[:, 0], nearest, which)

    @property
    def tried(self) -> Tensor:
        return self.own.isfinite()

    @property
    def wrong(self) -> Tensor:
        return self.tried & (self.nearest < self.own)


def group_holds(y: Sequence[int], seqs: Sequence[int | None]) -> list[int]:
    """A number for each sample: those with the same one are left out together.

    Lessons of one class that followed each other were one hold, a film or a folder of photos. A
    hold is left out in three parts, so that each is answered by what the others show of the thing;
    a short one sample by sample.

    >>> group_holds([0, 0, 1, 1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6, 7, 8])
    [0, 1, 2, 2, 3, 3, 4, 4]
    """
    holds: list[list[int]] = []
    last = (-1, -2)
    known = [(seq, i) for i, seq in enumerate(seqs) if seq is not None]
    for seq, i in sorted(known):
        if (y[i], seq) != (last[0], last[1] + 1):
            holds.append([])
        holds[-1].append(i)
        last = (y[i], seq)
    groups = list(range(-1, -len(y) - 1, -1))  # without a number a sample stands alone
    number = 0
    for hold in holds:
        parts = PARTS if len(hold) >= 2 * PARTS else len(hold)
        for place, i in enumerate(hold):
            groups[i] = number + place * parts // len(hold)
        number += parts
    return groups


def _number(target: Tensor, groups: Sequence[int]) -> Tensor:
    """0, 1, … for the pairs of class and group."""
    pairs = torch.stack((target, torch.tensor(groups)), 1)
    numbers: Tensor = torch.unique(pairs, dim=0, return_inverse=True)[1]
    return numbers


def _leave_out(E: Tensor, y: Tensor, group: Tensor, classes: int) -> Tensor:
    """Squared Mahalanobis distances [n, classes], each row without its own group.

    The mean of the own class is that of its other groups (the distance is infinite without any);
    the covariance is the one within classes without the sample, shrunk towards one variance. The
    mean of m samples is itself uncertain, and a new sample 1 + 1/m times as far from it as from the
    true one: distances are divided by that, or classes with few samples would seem far away.
    """
    n, d = E.shape
    E = E - E.mean(0)
    counts = torch.bincount(y, minlength=classes).to(E)
    sums = torch.zeros(classes, d).index_add_(0, y, E)
    size = torch.bincount(group).to(E)
    of_group = torch.zeros(len(size), d).index_add_(0, group, E)
    left = (counts[y] - size[group])[:, None]
    own = (sums[y] - of_group[group]) / left.clamp_min(1)
    alone = left[:, 0] == 0
    means = sums / counts.clamp_min(1)[:, None]
    share = 0.2 + 0.6 * d / (d + 4 * n)
    scatter = (E - means[y]).t() @ (E - means[y]) / n
    variance = max(float(scatter.diagonal().mean()), 1e-12)
    factor = torch.linalg.cholesky((1 - share) * scatter + share * variance * torch.eye(d))

    def whiten(rows: Tensor) -> Tensor:
        whitened: Tensor = torch.linalg.solve_triangular(factor, rows.t(), upper=False).t()
        return whitened

    at, mine, means = whiten(E), whiten(E - own), whiten(means)
    # each sample leaves the covariance, too (a rank-one downdate): with few samples it would
    # otherwise explain itself, and nothing would look odd
    weight = ((1 - share) / n * (1 - 1 / counts[y]))[:, None]
    along = (mine * at).sum(1, keepdim=True) - mine @ means.t()
    size = mine.square().sum(1, keepdim=True)
    left_out = weight / (1 - weight * size).clamp_min(1e-3)
    gaps = torch.cdist(at, means).square() + left_out * along.square()
    gaps /= 1 + 1 / counts.clamp_min(1)
    gaps[:, counts == 0] = torch.inf
    own_gap = (size + left_out * size.square()) / (1 + 1 / left.clamp_min(1))
    own_gap[alone] = torch.inf
    return gaps.scatter(1, y[:, None], own_gap)


def _advise(c: int, labels: Sequence[Label], y: Tensor, answers: _Answers) -> ClassReport:
    rows = y == c
    samples, tried, wrong = int(rows.sum()), rows & answers.tried, rows & answers.wrong
    if not bool(tried.any()):
        advice = "show it more often" if samples < FEW else "show it from other sides"
        return ClassReport(labels[c], samples, None, None, advice)
    accuracy = 1 - float(wrong.sum()) / float(tried.sum())
    like: Label | None = None
    if bool(wrong.any()):
        counted = torch.bincount(answers.which[wrong])
        if int(counted.max()) >= CONFUSED * int(tried.sum()):
            like = labels[int(counted.argmax())]
    if accuracy >= ENOUGH:
        advice = "enough" if samples >= FEW else "show it more often"
    elif like is not None:
        advice = f"looks like {like}"
    else:
        advice = "show it from other sides"
    return ClassReport(labels[c], samples, round(accuracy, 4), like, advice)


def _confuse(labels: Sequence[Label], y: Tensor, answers: _Answers) -> tuple[Confusion, ...]:
    rows = []
    for c in range(len(labels)):
        total = int((answers.tried & (y == c)).sum())
        counted = torch.bincount(answers.which[answers.wrong & (y == c)], minlength=len(labels))
        for other in torch.nonzero(counted >= max(1.0, CONFUSED * total))[:, 0].tolist():
            rows.append(Confusion(labels[c], labels[other], round(int(counted[other]) / total, 4)))
    return tuple(sorted(rows, key=lambda row: -row.share))


def _ridge_margins(E: Tensor, y: Tensor, classes: int) -> Tensor:
    """By how much a ridge regression on all other samples prefers another class to the own [n].

    Without a sample its prediction is y − (y − ŷ) / (1 − h), with h its own part in ŷ.
    """
    n, d = E.shape
    E = E - E.mean(0)
    E = E / E.square().sum(1).mean().sqrt().clamp_min(1e-12)
    targets = torch.eye(classes)[y] - torch.bincount(y, minlength=classes) / n
    if n <= d:
        gram = E @ E.t()
        hat = torch.linalg.solve(gram + RIDGE * torch.eye(n), gram)
        fitted, own = hat @ targets, hat.diagonal()
    else:
        solved = torch.linalg.solve(E.t() @ E + RIDGE * torch.eye(d), E.t())
        fitted, own = E @ (solved @ targets), (E * solved.t()).sum(1)
    scores = targets - (targets - fitted) / (1 - own).clamp_min(1e-4)[:, None]
    best = scores.scatter(1, y[:, None], -torch.inf).max(1).values
    margins: Tensor = best - scores.gather(1, y[:, None])[:, 0]
    return margins


def _combine(answers: _Answers, margins: Tensor) -> Tensor:
    """How much each sample contradicts the others [n]: the sum of what both estimates say."""
    tried = answers.tried & answers.nearest.isfinite()
    doubt = torch.full_like(answers.own, -torch.inf)
    if bool(tried.any()):
        parts = (answers.own[tried] - answers.nearest[tried], margins[tried])
        sizes = [part.std(correction=0).clamp_min(1e-12) for part in parts]
        doubt[tried] = parts[0] / sizes[0] + parts[1] / sizes[1]
    return doubt


def _suspect(
    labels: Sequence[Label],
    y: Tensor,
    answers: _Answers,
    score: Tensor,
    kept: Any,
    seqs: Sequence[int | None] | None,
    most: int,
) -> tuple[Suspect, ...]:
    worst = score.argsort(descending=True)[:most].tolist()
    return tuple(
        Suspect(
            labels[int(y[i])],
            labels[int(answers.which[i])],
            round(float(score[i]), 4),
            None if seqs is None else seqs[int(kept[i])],
        )
        for i in worst
        if float(score[i]) > 0
    )
