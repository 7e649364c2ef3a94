"""What the comparisons share: a line for each difference with its limit, and small networks."""

from __future__ import annotations

import sys

from torch import Tensor, nn

from verse.learners import Learner
from verse.network.plastic import Head, Plastic

_too_far: list[str] = []


def report(method: str, what: str, found: float, limit: float | None = None) -> None:
    """Without a limit the two are not the same; README.md says why."""
    allowed = "not the same" if limit is None else f"at most {limit:.0e}"
    print(f"{method:7} {what:60} {found:7.1e}  {allowed}")
    if limit is not None and not found <= limit:
        _too_far.append(f"{method}: {what}")


def finish() -> None:
    sys.exit(f"too far apart: {'; '.join(_too_far)}" if _too_far else 0)


def apart(mine: Tensor, other: Tensor) -> float:
    """Relative difference."""
    return float((mine - other).norm() / other.norm())


def differing(mine: Tensor, other: Tensor) -> float:
    """Share of rows whose largest score is that of another class."""
    return float((mine.argmax(1) != other.argmax(1)).float().mean())


def vectors(d: int) -> Plastic:
    """A network whose embedding is its input."""
    return Plastic(nn.Identity(), Head(d), z_shape=(d,))


def teach(learner: Learner, Z: Tensor, y: Tensor) -> None:
    for z, label in zip(Z, y, strict=True):
        learner.learn_one(z, int(label))
