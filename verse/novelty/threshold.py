"""What is usual in a stream, and so what is not: the threshold comes from the stream itself."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from verse.novelty.measures import Measures
from verse.stateful import Stateful
from verse.types import BadSetting, BadState

WINDOW = 256  # latest known frames: earlier ones were measured when less was known
OFTEN, SELDOM = 64, 4  # so many frames are all measured, later ones every fourth
REFUSED = 0.05  # share of known frames that may be called unknown

# The same for all data; chosen on validation videos of five data sets (docs/trust.md).
FEW_CLASSES = 5.0  # with so many classes, "relative to the others" counts half
LEAST_SPREAD = torch.tensor([0.25, 0.25, 0.1])
USUAL = torch.tensor([1.3, 0.3, 1.0])  # before the stream has told: mean and spread, ...
SPREAD = torch.tensor([0.5, 0.2, 0.7])
IMAGINED = torch.linspace(-1.5, 1.8, 9)  # and scores ...
PRIOR = 8  # ... which count as so many frames
FILM = 1.5  # squared distance of a new film, in that of a new frame of the films that were taught
STALE, FRESH = 0.4, 0.8  # freshness up to which a frame tells nothing of the threshold, and all
FIRST = -1.0  # in place of a weight, for frames of the first hold of a class
LEAST_WEIGHT = 0.02  # of a stale frame: without any fresh one it still tells something
LEAST_THRESHOLD = 0.5
SURPRISE = 2.0  # how much it counts with many classes; of few, many unknown things look like one
MOST_SURPRISE = 3.0  # spreads
FAR = 5.0  # spreads above the usual distance: farther is unknown, whatever the other measures say
BLANK_NOVELTY = 10.0  # of a picture that shows nothing


def check_share(refused: float) -> float:
    """A share of frames: above 0, below 1."""
    if not 0 < refused < 1:
        raise BadSetting(f"refused is a share of frames between 0 and 1, not {refused}")
    return refused


def due(novelty: Novelty, samples: int, classes: int) -> bool:
    """Is this frame of a known class to be measured? Later in the stream not every one is."""
    return classes > 1 and (novelty.count < OFTEN or samples % SELDOM == 0)


@dataclass(frozen=True)
class Rule:
    """From measures to a novelty: how many spreads they lie above what is usual.

    ``relative`` is how much the comparison with other classes counts, 0 to 1; the sum is divided by
    ``threshold``, so that above 1 is unknown. Distances are divided by ``unit`` before. With many
    classes the distance counts little, but noise can be near all of them alike and far from each:
    what it is more than ``FAR`` is added.

    >>> Rule(torch.zeros(3), torch.ones(3), 0.0, 2.0).judge(torch.tensor([[3.0, 0.0, 0.0]]))
    tensor([1.5000])
    """

    mean: Tensor
    spread: Tensor
    relative: float
    threshold: float
    unit: float = 1.0

    def judge(self, rows: Tensor) -> Tensor:
        """Novelty [n] of measures [n, 3]. By NumPy: of one row PyTorch's calls take ten times as
        long."""
        units = np.array((self.unit, self.unit, 1.0), np.float32)
        above = (rows.numpy() / units - self.mean.numpy()) / self.spread.numpy()
        distance, relative, surprise = above.T
        surprise = np.minimum(np.maximum(surprise, -MOST_SURPRISE), MOST_SURPRISE)
        relative = relative + SURPRISE * self.relative * surprise
        scores = distance + self.relative * (relative - distance)
        return torch.from_numpy(scores / self.threshold + np.maximum(distance - FAR, 0))


def scale_distances(rows: Tensor, unit: float) -> Tensor:
    """Measures [n, 3] with distances in a unit."""
    return rows / rows.new_tensor([unit, unit, 1.0])


class Novelty(Stateful):
    """What is usual in a stream, and so what is not.

    The score of a frame is a sum of its measures, each as so many spreads above the mean of the
    latest known frames. With few classes the distance counts, with many how it compares to other
    classes, and how sure the answer is. 0 is usual, 1 the threshold, above which a frame is
    unknown.

    The threshold is a quantile of the scores of known frames. Frames of one film are alike, and
    those of the next film are not: the less new a frame was to what is remembered of its class, the
    less it counts, for the mean and the spread as for the threshold. A hold is a row of samples of
    one class, often a film of one thing, and the n-th of it counts 1/n: those before vouch for it.
    The first hold of a class tells nothing of how the next one will differ: its frames hardly
    count, and while there are no others a new thing is expected ``FILM`` times as far away.

    Distances are in units of what is to be expected of a new sample. What the statistics expect
    takes all samples for independent; shown twice, the same frames would make it small, and
    everything else far. So the unit follows what is expected as far as frames are fresh.

    >>> novelty = Novelty()
    >>> novelty.count
    0
    """

    def __init__(self) -> None:
        self.rows = torch.zeros(WINDOW, 4)  # measures and weight
        self.count = 0  # known frames measured so far
        self.unit = 0.0  # of distances; 0: no frame has been measured
        self.shown = -1  # the class that is held now, ...
        self.first = False  # ... whether it has never been before, ...
        self.held = 0  # ... and how many samples of it have come
        self._rules: dict[tuple[int, float, float], Rule] = {}  # until the next change

    def show(self, y: int, *, new: bool) -> None:
        """A sample of the class ``y`` comes; ``new``: its first."""
        if new or y != self.shown:
            self.shown, self.first, self.held = y, new, 0
        self.held += 1

    def end_hold(self) -> None:
        """The next sample begins a hold: what was held is not known, or has another number now."""
        self.shown, self.first, self.held = -1, False, 0

    def observe(self, measures: Measures, fresh: float = 1.0) -> None:
        """A known frame, measured before it is learned; ``fresh`` is its ``freshness``."""
        follow = min(1.0, fresh / STALE) if self.count else 1.0
        self.unit += follow * (measures.expected - self.unit)
        row = self.rows[self.count % WINDOW]
        row[:3] = scale_distances(measures.rows[0].cpu(), self._unit(measures))
        row[3] = FIRST if self.first else _weigh(torch.tensor(fresh)) / max(1, self.held)
        self.count += 1
        self._rules = {}

    def judge(self, measures: Measures, *, refused: float = REFUSED) -> Tensor:
        """Novelty [n]; above 1 is unknown. ``refused``: share of known frames that may be."""
        return self.rule(measures, refused=refused).judge(measures.rows.cpu())

    def rule(self, measures: Measures, *, refused: float = REFUSED) -> Rule:
        """What makes measures a novelty, for as many classes and samples as there are now."""
        key = measures.classes, check_share(refused), self._unit(measures)
        if key not in self._rules:
            self._rules = {key: self._find_rule(*key)}
        return self._rules[key]

    def _unit(self, measures: Measures) -> float:
        return max(self.unit, measures.expected)

    def _find_rule(self, classes: int, refused: float, unit: float) -> Rule:
        latest = self.rows[self._latest()]
        usual, weights = latest[:, :3], latest[:, 3].clamp(min=0) + LEAST_WEIGHT
        first = float((latest[:, 3] == FIRST).sum()) / max(1, len(latest))
        farther = 1 + (FILM - 1) * first
        expected = scale_distances(torch.stack((USUAL, SPREAD)), 1 / farther)
        total = weights.sum() + PRIOR
        mean = (weights @ usual + PRIOR * expected[0]) / total
        off = expected[1] ** 2 + (expected[0] - mean) ** 2
        squares = weights @ (usual - mean).square() + PRIOR * off
        spread = (squares / total + LEAST_SPREAD**2).sqrt()
        relative = classes / (classes + FEW_CLASSES)
        rule = Rule(mean, spread, relative, 1.0)
        weights = torch.cat((weights, torch.full_like(IMAGINED, PRIOR / len(IMAGINED))))
        scores = torch.cat((rule.judge(usual), IMAGINED))
        threshold = _quantile(scores, weights, 1 - refused)
        widened = max(threshold, LEAST_THRESHOLD) * _widening(float(weights[: len(usual)].sum()))
        return replace(rule, threshold=widened, unit=unit)

    def _latest(self) -> Tensor:
        """Places of the latest known frames: two thirds of the stream at most. The first frames,
        all of which are measured, were seen when little was known."""
        frames = self.count + (SELDOM - 1) * max(0, self.count - OFTEN)
        early = frames // 3
        early -= (SELDOM - 1) * max(0, early - OFTEN) // SELDOM
        n = min(WINDOW, self.count - early)
        return torch.arange(self.count - n, self.count) % WINDOW

    def absorb(self, other: Novelty) -> None:
        """What was usual in either stream: both windows by age, the oldest of both left out."""
        both = [novelty.window for novelty in (self, other)]
        age = torch.cat([(torch.arange(len(rows)) + 0.5) / max(1, len(rows)) for rows in both])
        rows = torch.cat(both)[age.argsort(stable=True)][-WINDOW:]
        self.count += other.count
        self.unit = max(self.unit, other.unit)
        self.rows = torch.zeros(WINDOW, 4)
        self.rows[self._places()] = rows
        self._rules = {}

    @property
    def window(self) -> Tensor:
        """The rows of the latest known frames [n, 4], the oldest first."""
        return self.rows[self._places()]

    def _places(self) -> Tensor:
        """Places of all rows there are, the oldest first."""
        return torch.arange(max(0, self.count - WINDOW), self.count) % WINDOW

    # ---- state ------------------------------------------------------------------------------

    def mark(self) -> Any:
        row = self.rows[self.count % WINDOW].clone()
        return self.count, self.unit, (self.shown, self.first, self.held), row

    def undo(self, mark: Any) -> None:
        self.count, self.unit, (self.shown, self.first, self.held), row = mark
        self.rows[self.count % WINDOW] = row
        self._rules = {}

    def state(self) -> dict[str, Tensor]:
        unit = torch.tensor(self.unit, dtype=torch.float64)
        held = torch.tensor([self.shown, int(self.first), self.held])
        return {"usual": self.rows, "count": torch.tensor(self.count), "unit": unit, "held": held}

    def load_state(self, state: dict[str, Tensor]) -> None:
        rows, count, unit = (state.get(name) for name in ("usual", "count", "unit"))
        if rows is None and "rows" in state:
            return  # of an earlier version, which measured otherwise: what is usual is learned anew
        if rows is None or count is None or unit is None:
            raise BadState("the saved novelty is damaged: its tensors are missing")
        if rows.shape != self.rows.shape or count.numel() != 1 or unit.numel() != 1:
            raise BadState("the saved novelty is damaged: its tensors are misshaped")
        sound = math.isfinite(float(unit)) and bool(torch.isfinite(rows).all())
        if int(count) < 0 or float(unit) < 0 or not sound:
            raise BadState("the saved novelty is damaged: its values make no sense")
        self.rows, self.count, self.unit = rows.float().clone(), int(count), float(unit)
        self._rules = {}
        held = state.get("held")
        if held is None:  # of an earlier version, which kept freshness and knew nothing of holds
            self.rows[:, 3] = _weigh(self.rows[:, 3])
            self.end_hold()
        elif held.shape != (3,) or held.is_floating_point():
            raise BadState("the saved novelty is damaged: its tensors are misshaped")
        else:
            self.shown, self.first, self.held = int(held[0]), bool(held[1]), int(held[2])

    def follow(self, other: Novelty) -> None:
        self.rows.copy_(other.rows)
        self.count, self.unit = other.count, other.unit
        self.shown, self.first, self.held = other.shown, other.first, other.held
        self._rules = {}


def _weigh(fresh: Tensor) -> Tensor:
    """How much frames of this freshness count, 0 to 1."""
    return ((fresh - STALE) / (FRESH - STALE)).clamp(0, 1)


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
