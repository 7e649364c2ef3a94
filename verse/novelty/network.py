"""The novelty of a feature as layers that can be exported."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from verse.backbones.outputs import Columns, Smallest
from verse.kernels.joint_statistics import JointStatistics
from verse.learners import Learner
from verse.novelty.measures import LEAST_PROBABILITY, KeepsStatistics
from verse.novelty.threshold import FAR, MOST_SURPRISE, SURPRISE, Rule


def build_network(
    learner: Learner, network: nn.Module, outputs: Sequence[int], rule: Rule
) -> nn.Module:
    """Features [n, …] → novelty [n], as ``measure_novelty`` and ``rule`` have it now.

    ``network`` gives the learner's scores, of which the columns ``outputs`` are classes.
    """
    surprise = nn.Sequential(network, Columns(outputs), _Surprise())
    if not isinstance(learner, KeepsStatistics):
        return _Judge(None, surprise, rule)
    features = learner.features
    what = Columns(range(0, features.d, features.positions))
    # channels come first in an export
    far = nn.Sequential(features.module, what, _Distances(learner.averages))
    return _Judge(far, surprise, rule)


class _Judge(nn.Module):
    """``Rule.judge`` of what ``measure_novelty`` measures."""

    def __init__(self, far: nn.Module | None, surprise: nn.Module, rule: Rule) -> None:
        super().__init__()
        self.far, self.surprise = far, surprise
        factors = 1 / rule.spread
        offsets = -rule.mean * factors
        self.doubt = (float(factors[2]), float(offsets[2]))
        shares = torch.tensor([1 - rule.relative, rule.relative])
        self.weights = (shares * factors[:2] / (rule.threshold * rule.unit)).tolist()
        self.constant = float(shares @ offsets[:2]) / rule.threshold
        self.beyond = (float(factors[0]) / rule.unit, float(offsets[0]) - FAR)
        self.share = SURPRISE * rule.relative**2 / rule.threshold

    def forward(self, z: Tensor) -> Tensor:
        factor, offset = self.doubt
        surprise = torch.clamp(self.surprise(z) * factor + offset, -MOST_SURPRISE, MOST_SURPRISE)
        novelty = surprise * self.share + self.constant
        if self.far is not None:
            distance, relative = self.far(z)
            novelty = novelty + distance * self.weights[0] + relative * self.weights[1]
            factor, offset = self.beyond
            novelty = novelty + torch.clamp(distance * factor + offset, 0.0, math.inf)
        summed: Tensor = torch.sum(novelty, 1)
        return summed


class _Surprise(nn.Module):
    """−log of the largest probability [n, 1], of scores [n, classes]."""

    def __init__(self) -> None:
        super().__init__()
        self.smallest = Smallest()

    def forward(self, scores: Tensor) -> Tensor:
        surprise: Tensor = self.smallest(torch.log_softmax(scores, 1) * -1.0)
        return torch.clamp(surprise, 0.0, -math.log(LEAST_PROBABILITY))


class _Distances(nn.Module):
    """The distance to the nearest class and the same minus that to the background, [n, 1] each."""

    origin: Tensor
    inverse: Tensor
    weights: Tensor
    sizes: Tensor
    means: Tensor
    centred: Tensor
    shift: Tensor
    explain: Tensor

    def __init__(self, known: JointStatistics) -> None:
        super().__init__()
        around = known.background
        inverse = known.solve(torch.eye(known.d, device=around.row.device))
        some = (known.weights * known.scale)[known.standing]
        constants = {
            "origin": known.origin.clone(),
            "inverse": (inverse + inverse.t()) * (known.scale / 2),
            "weights": known.weights.t() * (-2 * known.scale),
            "sizes": known.sizes * known.scale,
            "means": some.mean(0)[:, None] * -2.0,
            "centred": (some - some.mean(0)).t(),
            "shift": around.row * -1.0,
            "explain": around.inverse,
        }
        for name, value in constants.items():
            self.register_buffer(name, value.cpu().contiguous())
        self.to_centre, self.smallest = around.size, Smallest()

    def forward(self, e: Tensor) -> tuple[Tensor, Tensor]:
        e = e - self.origin
        own = torch.sum((e @ self.inverse) * e, 1, True)
        squared = torch.clamp(e @ self.weights + self.sizes + own, 0.0, math.inf)
        along = e @ self.centred + self.shift
        explained = torch.sum((along @ self.explain) * along, 1, True)
        background = own + e @ self.means + self.to_centre - explained
        nearest = self.smallest(squared)
        return nearest, nearest - torch.clamp(background, 0.0, math.inf)
