"""The novelty of a feature as layers that can be exported."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from verse.backbones.outputs import Columns, Gap, Smallest
from verse.kernels.joint_statistics import JointStatistics
from verse.learners import Learner
from verse.novelty.measures import Background, KeepsStatistics, temperature
from verse.novelty.threshold import Rule


def build_network(
    learner: Learner, network: nn.Module, outputs: Sequence[int], rule: Rule
) -> nn.Module:
    """Features [n, …] → novelty [n], as ``measure`` and ``rule`` have it now.

    ``network`` gives the learner's scores, of which the columns ``outputs`` are classes.
    """
    if isinstance(learner, KeepsStatistics):
        module = getattr(learner.features, "module", None)  # channels come first in an export
        if isinstance(module, nn.Module):
            return nn.Sequential(module, _ByDistance(learner.statistics, rule))
    return nn.Sequential(network, Columns(outputs), _ByScores(len(outputs), rule))


class _Judge(nn.Module):
    """``Rule.judge`` of four columns [n, 1]."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.offsets = (-rule.mean / rule.spread).tolist()
        self.factors = (1 / rule.spread).tolist()
        far = (1 - rule.relative) / rule.threshold
        self.weights = (far, rule.relative / rule.threshold)

    def forward(self, columns: Sequence[Tensor]) -> Tensor:
        distance, background, close, entropy = (
            column * factor + offset
            for column, factor, offset in zip(columns, self.factors, self.offsets, strict=True)
        )
        undecided = torch.clamp(close * 0.5 + entropy, -3.0, 3.0)
        far, relative = self.weights
        novelty: Tensor = torch.sum(distance * far + (background + undecided) * relative, 1)
        return novelty


class _ByScores(nn.Module):
    """A learner without statistics: closeness of the second score, and entropy."""

    def __init__(self, classes: int, rule: Rule) -> None:
        super().__init__()
        self.judge, self.gap = _Judge(rule), Gap(classes)
        self.per_nat = -1 / max(math.log(classes), 0.1)

    def forward(self, scores: Tensor) -> Tensor:
        log_p = torch.log_softmax(scores, 1)
        gap = self.gap(log_p * -1.0)
        none = gap * 0.0
        close, entropy = torch.sqrt(gap) * -1.0, _nats(log_p) * self.per_nat
        novelty: Tensor = self.judge((none, none, close, entropy))
        return novelty


class _ByDistance(nn.Module):
    """All four measures of features [n, d], by the statistics."""

    origin: Tensor
    inverse: Tensor
    weights: Tensor
    sizes: Tensor
    means: Tensor
    centred: Tensor
    shift: Tensor
    explain: Tensor

    def __init__(self, known: JointStatistics, rule: Rule) -> None:
        super().__init__()
        around = Background.of(known)
        device = around.row.device
        classes, some = len(known.counts), len(around.row)
        inverse = known.solve(torch.eye(known.d, device=device))
        constants = {
            "origin": known.origin.clone(),
            "inverse": (inverse + inverse.t()) * (known.scale / 2),
            "weights": known.weights.t() * (-2 * known.scale),
            "sizes": known.sizes * known.scale,
            "means": around.whitened.mean(0)[:, None] * -2.0,
            "centred": (around.whitened - around.whitened.mean(0)).t(),
            "shift": around.row.mean() - around.row,
            "explain": torch.linalg.inv(around.between) if some > 1 else torch.zeros(1, 1),
        }
        for name, value in constants.items():
            self.register_buffer(name, value.cpu().contiguous())
        self.to_centre, self.per_unit = float(around.row.mean()), 1 / known.usual_distance
        self.cooled, self.per_nat = -1 / temperature(known.d), -1 / max(math.log(classes), 0.1)
        self.smallest, self.gap, self.judge = Smallest(), Gap(classes), _Judge(rule)

    def forward(self, e: Tensor) -> Tensor:
        e = e - self.origin
        own = torch.sum((e @ self.inverse) * e, 1, True)
        squared = torch.clamp(e @ self.weights + self.sizes + own, 0.0, math.inf)
        along = e @ self.centred + self.shift
        explained = torch.sum((along @ self.explain) * along, 1, True)
        background = own + e @ self.means + self.to_centre - explained
        background = torch.clamp(background, 0.0, math.inf) * self.per_unit
        log_p = torch.log_softmax(squared * self.cooled, 1)
        squared = squared * self.per_unit
        nearest = self.smallest(squared)
        close = torch.sqrt(self.gap(squared)) * -1.0
        entropy = _nats(log_p) * self.per_nat
        novelty: Tensor = self.judge((nearest, nearest - background, close, entropy))
        return novelty


def _nats(log_p: Tensor) -> Tensor:
    """Σ p log p [n, 1]."""
    return torch.sum(torch.exp(log_p) * torch.clamp(log_p, -1e4, 0.0), 1, True)
