"""What is usual in a stream, and so what is not: the threshold comes from the stream itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from verse.novelty.measures import Measures
from verse.stateful import Stateful
from verse.types import BadSetting, BadState

WINDOW = 256  # latest known frames: earlier ones were measured when less was known
SELDOM = 4  # once the window is full, every fourth frame is measured
REFUSED = 0.05  # share of known frames that may be called unknown

# The same for all data; chosen on validation videos of five data sets (docs/trust.md).
FEW_CLASSES = 5.0  # with so many classes, "relative to the others" counts half
LEAST_SPREAD = torch.tensor([0.25, 0.25, 0.1, 0.05])
USUAL = torch.tensor([1.3, 0.3, -0.6, 0.0])  # before the stream has told: mean and spread, ...
SPREAD = torch.tensor([0.5, 0.2, 0.4, 0.05])
IMAGINED = torch.linspace(-1.5, 1.8, 9)  # and scores ...
PRIOR = 8  # ... which count as so many frames
STALE, FRESH = 0.4, 0.8  # freshness up to which a frame tells nothing of the threshold, and all
LEAST_WEIGHT = 0.02  # of a stale frame: without any fresh one it still tells something
LEAST_THRESHOLD = 0.5
BLANK_NOVELTY = 10.0  # of a picture that shows nothing


def check_share(refused: float) -> float:
    """A share of frames: above 0, below 1."""
    if not 0 < refused < 1:
        raise BadSetting(f"refused is a share of frames between 0 and 1, not {refused}")
    return refused


def due(novelty: Novelty, samples: int, classes: int) -> bool:
    """Is this frame of a known class to be measured? Later in the stream not every one is."""
    return classes > 1 and (novelty.count < WINDOW or samples % SELDOM == 0)


@dataclass(frozen=True)
class Rule:
    """From measures to a novelty: how many spreads they lie above what is usual.

    ``relative`` is how much the comparison with other classes counts, 0 to 1; the sum is divided by
    ``threshold``, so that above 1 is unknown.

    >>> Rule(torch.zeros(4), torch.ones(4), 0.0, 2.0).judge(torch.tensor([[3.0, 0.0, 0.0, 0.0]]))
    tensor([1.5000])
    """

    mean: Tensor
    spread: Tensor
    relative: float
    threshold: float

    def judge(self, rows: Tensor) -> Tensor:
        """Novelty [n] of measures [n, 4]."""
        distance, background, close, entropy = ((rows - self.mean) / self.spread).unbind(1)
        undecided = (0.5 * close + entropy).clamp(-3, 3)
        scores: Tensor = (1 - self.relative) * distance + self.relative * (background + undecided)
        return scores / self.threshold


class Novelty(Stateful):
    """What is usual in a stream, and so what is not.

    The score of a frame is a sum of its measures, each as so many spreads above the mean of the
    latest known frames. With few classes the distance counts, with many also how it compares to
    other classes. 0 is usual, 1 the threshold, above which a frame is unknown.

    The threshold is a quantile of the scores of known frames. Frames of one film are alike, and
    those of the next film are not: the less new a frame was to what is remembered of its class, the
    less it counts, for the mean and the spread as for the threshold.

    >>> novelty = Novelty()
    >>> novelty.count
    0
    """

    def __init__(self) -> None:
        self.rows = torch.zeros(WINDOW, 5)  # measures and freshness
        self.count = 0  # known frames measured so far

    def observe(self, measures: Measures, fresh: float = 1.0) -> None:
        """A known frame, measured before it is learned; ``fresh`` is its ``freshness``."""
        row = self.rows[self.count % WINDOW]
        row[:4], row[4] = measures.rows[0].cpu(), fresh
        self.count += 1

    def judge(self, measures: Measures, *, refused: float = REFUSED) -> Tensor:
        """Novelty [n]; above 1 is unknown. ``refused``: share of known frames that may be."""
        return self.rule(measures, refused=refused).judge(measures.rows.cpu())

    def rule(self, measures: Measures, *, refused: float = REFUSED) -> Rule:
        """What makes measures a novelty, for as many classes and samples as there are now."""
        refused = check_share(refused)
        latest = self.rows[self._latest()]
        usual, fresh = latest[:, :4], latest[:, 4]
        weights = ((fresh - STALE) / (FRESH - STALE)).clamp(0, 1) + LEAST_WEIGHT
        total = weights.sum() + PRIOR
        mean = (weights @ usual + PRIOR * USUAL) / total
        squares = weights @ (usual - mean).square() + PRIOR * (SPREAD**2 + (USUAL - mean) ** 2)
        spread = (squares / total + LEAST_SPREAD**2).sqrt()
        relative = measures.classes / (measures.classes + FEW_CLASSES)
        rule = Rule(mean, spread, relative, 1.0)
        weights = torch.cat((weights, torch.full_like(IMAGINED, PRIOR / len(IMAGINED))))
        scores = torch.cat((rule.judge(usual), IMAGINED))
        threshold = _quantile(scores, weights, 1 - refused)
        widened = max(threshold, LEAST_THRESHOLD) * _widening(float(weights[: len(usual)].sum()))
        return replace(rule, threshold=widened)

    def _latest(self) -> Tensor:
        """Places of the latest known frames: two thirds of the stream at most."""
        n = min(WINDOW, self.count - self.count // 3)
        return torch.arange(self.count - n, self.count) % WINDOW

    def absorb(self, other: Novelty) -> None:
        """What was usual in either stream: both windows by age, the oldest of both left out."""
        both = [novelty.rows[novelty._places()] for novelty in (self, other)]
        age = torch.cat([(torch.arange(len(rows)) + 0.5) / max(1, len(rows)) for rows in both])
        rows = torch.cat(both)[age.argsort(stable=True)][-WINDOW:]
        self.count += other.count
        self.rows = torch.zeros(WINDOW, 5)
        self.rows[self._places()] = rows

    def _places(self) -> Tensor:
        """Places of all rows there are, the oldest first."""
        return torch.arange(max(0, self.count - WINDOW), self.count) % WINDOW

    # ---- state ------------------------------------------------------------------------------

    def mark(self) -> Any:
        return self.count, self.rows[self.count % WINDOW].clone()

    def undo(self, mark: Any) -> None:
        self.count = mark[0]
        self.rows[self.count % WINDOW] = mark[1]

    def state(self) -> dict[str, Tensor]:
        return {"rows": self.rows, "count": torch.tensor(self.count)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        rows, count = state.get("rows"), state.get("count")
        if rows is not None and rows.shape == (WINDOW, 4):
            return  # of an earlier version, which measured otherwise: what is usual is learned anew
        if rows is None or count is None or rows.shape != self.rows.shape or count.numel() != 1:
            raise BadState("the saved novelty is damaged: its tensors are missing or misshaped")
        if int(count) < 0 or not bool(torch.isfinite(rows).all()):
            raise BadState("the saved novelty is damaged: its values make no sense")
        self.rows, self.count = rows.float().clone(), int(count)

    def follow(self, other: Novelty) -> None:
        self.rows.copy_(other.rows)
        self.count = other.count


def _widening(frames: float) -> float:
    """How much larger a 95 % quantile of Student's t is than that of a normal distribution: with
    few fresh frames nobody knows how different the next film will be.

    >>> round(_widening(0), 2), round(_widening(4), 2), round(_widening(100), 2)
    (2.79, 1.22, 1.01)
    """
    freedom = 1 + frames
    return 1 + 0.93 / freedom + 0.86 / freedom**2


def _quantile(values: Tensor, weights: Tensor, share: float) -> float:
    """The value below which a share of all weight lies, between values by their distance."""
    values, order = values.sort()
    weights = weights[order]
    below = weights.cumsum(0) - weights / 2
    wanted = share * float(weights.sum())
    at = min(max(int((below < wanted).sum()), 1), len(values) - 1)
    low, high = below[at - 1 : at + 1].tolist()
    part = min(max((wanted - low) / max(high - low, 1e-12), 0.0), 1.0)
    return float(values[at - 1] + part * (values[at] - values[at - 1]))
