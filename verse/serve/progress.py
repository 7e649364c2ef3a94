"""How it is going: events per second, and the accuracy of answers given before learning."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Collection
from pathlib import Path

from verse import paths
from verse.durable.write_ahead import UNDO_WINDOW

WINDOW = 50  # answers that the prequential accuracy is a mean of
POINTS = 240  # of the accuracy's history; when there are more, every second one goes


class EventRate:
    """Events per second over the last few seconds.

    >>> rate = EventRate()
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
        # (number, was it right): more than the mean needs, because some may be undone
        self._answers: deque[tuple[int, bool]] = deque(maxlen=WINDOW + UNDO_WINDOW)
        self.points: list[tuple[int, float]] = []

    @property
    def accuracy(self) -> float | None:
        lately = [correct for _, correct in self._answers][-WINDOW:]
        return sum(lately) / len(lately) if lately else None

    def add(self, sample: int, correct: bool, seq: int = 0) -> None:
        """The answer for the ``sample``-th sample, whose sequence number is ``seq``."""
        self._answers.append((seq, correct))
        self._mark(sample)

    def remove(self, seqs: Collection[int], samples: int) -> None:
        """Undone samples do not count; ``samples`` are left."""
        kept = [answer for answer in self._answers if answer[0] not in seqs]
        if len(kept) < len(self._answers):
            self._answers = deque(kept, self._answers.maxlen)
            self.points = [point for point in self.points if point[0] < samples]
            self._mark(samples)

    def _mark(self, sample: int) -> None:
        if self.accuracy is None:
            return
        self.points.append((sample, round(self.accuracy, 4)))
        if len(self.points) > POINTS:
            self.points = self.points[1::2]

    def save(self, path: Path) -> None:
        document = {"answers": list(self._answers), "points": self.points}
        paths.write_atomic(path, json.dumps(document).encode())

    @classmethod
    def load(cls, path: Path) -> Prequential:
        """What ``save`` kept; it is a chart and no state, so a damaged file counts as none."""
        self = cls()
        try:
            document = json.loads(path.read_bytes())
            if "window" in document:  # of an older version, without numbers
                document["answers"] = [(0, correct) for correct in document["window"]]
            answers = [(int(seq), bool(correct)) for seq, correct in document["answers"]]
            points = [(int(sample), float(accuracy)) for sample, accuracy in document["points"]]
        except (OSError, ValueError, KeyError, TypeError):
            return self
        self._answers.extend(answers)
        self.points = points[-POINTS:]
        return self
