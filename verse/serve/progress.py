"""How it is going: events per second, and the accuracy of answers given before learning."""

from __future__ import annotations

import json
import time
from collections import deque
from pathlib import Path

from verse import checkpoint

WINDOW = 50  # answers that the prequential accuracy is a mean of
POINTS = 240  # of the accuracy's history; when there are more, every second one goes


class Rate:
    """Events per second over the last few seconds.

    >>> rate = Rate()
    >>> rate.tick(3)
    >>> rate.per_second() > 0
    True
    """

    SECONDS = 5

    def __init__(self) -> None:
        self._ticks: deque[tuple[int, int]] = deque(maxlen=self.SECONDS + 1)  # (second, count)

    def tick(self, n: int = 1) -> None:
        """One thread only."""
        now = int(time.monotonic())
        if self._ticks and self._ticks[-1][0] == now:
            n += self._ticks.pop()[1]
        self._ticks.append((now, n))

    def per_second(self) -> float:
        now = int(time.monotonic())
        recent = [n for second, n in tuple(self._ticks) if now - self.SECONDS < second <= now]
        return sum(recent) / self.SECONDS


class Prequential:
    """Test, then train: how often the answer before learning was the label taught.

    >>> prequential = Prequential()
    >>> for sample, correct in enumerate([False, True, True, True], 1):
    ...     prequential.add(sample, correct)
    >>> prequential.accuracy, prequential.points[-1]
    (0.75, (4, 0.75))
    """

    def __init__(self) -> None:
        self._window: deque[bool] = deque(maxlen=WINDOW)
        self.points: list[tuple[int, float]] = []

    @property
    def accuracy(self) -> float | None:
        return sum(self._window) / len(self._window) if self._window else None

    def add(self, sample: int, correct: bool) -> None:
        self._window.append(correct)
        self.points.append((sample, round(sum(self._window) / len(self._window), 4)))
        if len(self.points) > POINTS:
            self.points = self.points[1::2]

    def save(self, path: Path) -> None:
        document = {"window": list(self._window), "points": self.points}
        checkpoint.write_atomic(path, json.dumps(document).encode())

    @classmethod
    def load(cls, path: Path) -> Prequential:
        """What ``save`` kept; it is a chart and no state, so a damaged file counts as none."""
        self = cls()
        try:
            document = json.loads(path.read_bytes())
            window = [bool(correct) for correct in document["window"]]
            points = [(int(sample), float(accuracy)) for sample, accuracy in document["points"]]
        except (OSError, ValueError, KeyError, TypeError):
            return self
        self._window.extend(window)
        self.points = points[-POINTS:]
        return self
