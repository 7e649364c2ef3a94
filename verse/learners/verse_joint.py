"""VERSE beside exact statistics of the whole stream: the default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Self

import torch
from torch import Tensor, nn

from verse.backbones.grid import POSITIONS, Grid, Scale
from verse.backbones.outputs import WeightedSum, make_linear
from verse.kernels.joint_statistics import JointStatistics
from verse.learners.base import require_settings
from verse.learners.shared.grid_features import GridFeatures
from verse.learners.verse import VERSE
from verse.memory.base import Memory
from verse.network.plastic import Head, Plastic
from verse.network.products import limit_threads
from verse.settings import about, share

BEFORE, MANY, WITHIN = 80, 900, 0.65  # n₀, N₀, v₀: benchmarks/calibration.py
AVERAGES = 0.3  # least share of one variance in the covariance of the averages


class VERSEJoint(VERSE):
    """Exact statistics of the whole stream and VERSE's network answer together.

    Class means and a covariance forget nothing and know a class from its first sample; the network
    is trained to tell classes apart.
    There are two such statistics: of all ``GridFeatures`` of a sample, what is in it and where, and
    of its average over the positions alone. The first tell more apart; the second,
    whose covariance is shrunk more, hold where pictures are turned, moved or lit otherwise than
    those shown. With d_k² the squared Mahalanobis distance to the mean of class k,
    m the same distance as it is to be expected of a new sample of a class, v the share of the
    variance that is within classes (all from ``JointStatistics``), and N the samples so far::

        score_k = t ( −½ κ ((1 − a) d_k² / m + a d'_k² / m') + w F_θ(z)_k ),
        t = v / v₀ · (N + n₀) / (N + n₀ + N₀)

    Posteriors of hundreds of values that are not independent are far too sure of themselves: d² is
    divided by what it usually is, and κ is for how many independent values it counts. t is
    for what the samples have not shown. There may be few of them: the covariance, which all
    classes share, is what they are needed for. Or those of a class may be much alike: then the
    next film differs more from them than they do from each other.

    The network is linear on the same grid, whatever the split: larger maps are averaged to it.
    Its features have one length, so that one learning rate fits all. λ is a tenth of the paper's:
    the distillation is a mean over outputs, and at this rate the paper's λ diverges while there are
    few.

    Parameters
    ----------
    F
        The plastic network. One with layers of its own before the head is not used: a linear one
        takes its place.
    memory
        What VERSE replays from.
    s
        How much "where" counts beside "what" in the first statistics.
    shrinkage
        Least share of one common variance in their covariance.
    average
        a, the say of the second.
    sharpness
        κ.
    weight
        w, of the network beside the statistics.
    alpha, beta, lam, gamma, r, C, clip, seed
        As in ``VERSE``.

    >>> import torch
    >>> from verse.memory import ClassBalanced
    >>> F = Plastic(nn.Identity(), Head(2), z_shape=(2,))
    >>> learner = VERSEJoint(F, ClassBalanced(8))
    >>> for t in range(8):
    ...     learner.learn_one(torch.eye(2)[t % 2] + 0.1 * (t // 2 % 2), t % 2)
    >>> learner.predict_one(torch.tensor([0.9, 0.2]))
    0
    """

    name: ClassVar[str] = "verse-joint"
    traits = replace(
        VERSE.traits,
        fidelity="adapted",
        adaptation="a variant of this project: VERSE's network and a streaming discriminant "
        "analysis with one covariance answer together.",
    )
    STATE: ClassVar[tuple[str, ...]] = (*VERSE.STATE, "statistics", "averages")

    def __init__(
        self,
        F: Plastic,
        memory: Memory,
        *,
        s: Annotated[float, share("how much where counts beside what")] = 1.0,
        shrinkage: Annotated[float, about("share of one variance", above=0, most=0.5)] = 0.1,
        average: Annotated[float, share("say of the average over the positions")] = 0.2,
        sharpness: Annotated[float, about("how sure the statistics are", above=0)] = 96.0,
        weight: Annotated[float, about("of the network beside the statistics", least=0)] = 0.08,
        alpha: float = 0.15,
        beta: float = 0.3,
        lam: float = 0.03,
        gamma: float = 0.9,
        r: float = 0.05,
        C: int = 16,
        clip: float | None = None,
        seed: int = 0,
    ) -> None:
        require_settings(VERSEJoint, locals())
        super().__init__(
            linear_on_grid(F),
            memory,
            alpha=alpha,
            beta=beta,
            lam=lam,
            gamma=gamma,
            r=r,
            C=C,
            clip=clip,
            seed=seed,
        )
        self.s, self.shrinkage, self.average = s, shrinkage, average
        self.sharpness, self.weight = sharpness, weight
        self._scale = Scale()  # one learning rate fits all features
        self.features = GridFeatures(
            F.z_shape, s=s, channels_last=F.channels_last, device=self.device
        )
        self.statistics = JointStatistics(self.features.d, self.device, shrinkage=shrinkage)
        d = len(range(0, self.features.d, self.features.positions))
        self.averages = JointStatistics(d, self.device, shrinkage=AVERAGES)

    def step(self, z: Tensor, y: int) -> None:
        with limit_threads(self.features.d**2):
            e = self.features(z)[0]
            self.require_finite(self.statistics.largest(e, y))
            super().step(self._scale(z), y)
            self.statistics.add(e, y)
            self.averages.add(e[:: self.features.positions].contiguous(), y)

    def absorb(self, other: Self, outputs: Sequence[int], *, steps: int) -> None:
        """Statistics add exactly. Of a class that both know the network has the mean of both,
        weighted by samples; then it learns from what it remembers to tell all classes apart."""
        for mine, theirs in ((self.theta, other.theta), (self.phi, other.phi)):
            own, new = mine.layout.views(mine.data), theirs.layout.views(theirs.data)
            counts = self.statistics.counts.tolist()
            for output, (at, m) in enumerate(
                zip(outputs, other.statistics.counts.tolist(), strict=True)
            ):
                for name in ("head.weight", "head.bias"):
                    own[name][at] += (new[name][output] - own[name][at]) * (m / (counts[at] + m))
                counts[at] += m
            mine.sync()
        self.statistics.absorb(other.statistics, outputs)
        self.averages.absorb(other.averages, outputs)
        self.memory.absorb(other.memory, outputs)
        for _ in range(steps if len(self.memory) else 0):
            sample = self.memory.sample(1)
            self._train(sample.z, int(sample.y))

    def logits(self, Z: Tensor) -> Tensor:
        with limit_threads(self.features.d**2 + Z.numel()):
            E, a = self.features(Z), self.average
            evidence = self.statistics.evidence(E).mul_(1 - a)
            evidence.add_(self.averages.evidence(E[:, :: self.features.positions]), alpha=a)
            learned = super().logits(self._scale(Z))
        return learned.mul_(self.weight).add_(evidence, alpha=self.sharpness).mul_(self._trust)

    @property
    def _trust(self) -> float:
        """t."""
        known = self.statistics.samples + BEFORE
        return self.statistics.within / WITHIN * known / (known + MANY)

    def _classifier(self) -> tuple[Tensor, Tensor]:
        """(weight [classes, d], bias [classes]) of both statistics together, on all features."""
        (weight, bias), (weight_a, bias_a) = (
            self.statistics.classifier(),
            self.averages.classifier(),
        )
        weight = weight * (1 - self.average)
        weight[:, :: self.features.positions].add_(weight_a, alpha=self.average)
        return weight, torch.lerp(bias, bias_a, self.average)

    def network(self) -> nn.Module:
        statistics = nn.Sequential(self.features.module, make_linear(*self._classifier()))
        network = nn.Sequential(Scale(), super().network())
        trust = self._trust
        both = WeightedSum(network, self.weight * trust, statistics, self.sharpness * trust)
        return both.requires_grad_(False)


def linear_on_grid(F: Plastic) -> Plastic:
    """F itself if nothing but its head learns; else a head alone, on the grid of F's maps."""
    if not any(True for _ in F.body.parameters()):
        return F
    maps = len(F.z_shape) == 3 and min(F.z_shape[1:]) >= POSITIONS
    body = nn.Sequential(Grid(F.z_shape, POSITIONS), nn.Flatten()) if maps else nn.Flatten()
    d = F.z_shape[0] * POSITIONS**2 if maps else math.prod(F.z_shape)
    return Plastic(body, Head(d), z_shape=F.z_shape, channels_last=F.channels_last)
