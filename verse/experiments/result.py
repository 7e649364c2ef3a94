"""What a finished run leaves behind: one small JSON document, enough for every table and figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verse import metrics
from verse.evaluate import SoFar, Tested
from verse.experiments.run import Run
from verse.learners import defaults

ALLOWED = 0.02  # that a closed form may be above the reference on the test frames


@dataclass(frozen=True)
class Bound:
    """Offline at one test event, and the closed-form classifiers.

    ``accuracy`` and ``by_video`` are of F trained by SGD, as in the paper. ``closed`` has the test
    accuracy of each closed form; ``best`` names the reference that Ω_all divides by, and
    ``best_by_video`` has its counts (empty: SGD is the reference).

    Parameters
    ----------
    accuracy, by_video
        Of F trained by SGD.
    epochs
        Of that training.
    flat
        Had its loss come to rest?
    closed
        Name of a closed form → its test accuracy.
    best
        The reference that Ω_all divides by; empty: SGD.
    best_by_video
        [video, right, frames] of it.

    >>> Bound(0.9, [], 12, True, {"ridge": 0.85, "lda": 0.95}).sound
    True
    """

    accuracy: float
    by_video: list[list[int]]
    epochs: int
    flat: bool
    closed: dict[str, float]
    best: str = ""
    best_by_video: list[list[int]] = field(default_factory=list)

    @property
    def reference(self) -> float:
        """The accuracy that Ω_all divides by."""
        if not self.best_by_video:
            return self.accuracy
        right, frames = (sum(row[i] for row in self.best_by_video) for i in (1, 2))
        return right / frames

    @property
    def sound(self) -> bool:
        """The reference is not clearly behind any closed form (``ALLOWED``: it was chosen on other
        videos). Older results have no chosen one: there Offline must reach the weaker of two."""
        if not self.closed:
            return True
        if self.best:
            return self.reference >= max(self.closed.values()) - ALLOWED
        return self.accuracy >= min(self.closed.values())


@dataclass(frozen=True)
class Result:
    """A run and its numbers.

    ``events`` are the test events with their counts by class and by video; ``offline`` is one bound
    per event, or empty. ``circumstances`` are versions, threads and machine.

    Parameters
    ----------
    run
        What was run.
    classes
        Names of the classes.
    split
        The rule that split the data set.
    fingerprint
        A hash of the frames.
    frames, test_frames
        How many.
    events
        The test events.
    offline
        One bound per event, or none.
    learned, refused, missed, unreadable
        Frames of the stream.
    learn_seconds, seconds
        Spent learning, and in all.
    capacity, memory_bytes
        Of the replay buffer.
    settings
        Of the learner, defaults included.
    circumstances
        Versions, threads and machine.
    first_refusal
        Why a frame was refused.
    prequential
        Accuracy of answers before learning.
    id
        Of the run when it was made; left out: its identity now.
    defaults
        Settings of the learner that the run left to their defaults then.

    >>> tested = Tested(4, [0, 1], 0.75, [[0, 2, 2], [1, 1, 2]], [[5, 3, 4]], [], seconds=0.1)
    >>> result = Result(
    ...     run=Run("tabletop"), classes=("cup", "mug"), split="", fingerprint="", frames=4,
    ...     test_frames=4, events=(tested,), offline=(Bound(1.0, [], 10, True, {}),),
    ...     learned=4, refused=0, missed=0, unreadable=0, learn_seconds=2.0, seconds=3.0,
    ...     capacity=1, memory_bytes=8, settings={}, circumstances={})
    >>> result.mu_all, result.omega_all, result.steps_per_second
    (0.75, 0.75, 2.0)
    """

    run: Run
    classes: tuple[str, ...]
    split: str
    fingerprint: str
    frames: int
    test_frames: int
    events: tuple[Tested, ...]
    offline: tuple[Bound, ...]
    learned: int
    refused: int
    missed: int
    unreadable: int
    learn_seconds: float
    seconds: float
    capacity: int
    memory_bytes: int
    settings: dict[str, Any]
    circumstances: dict[str, str]
    first_refusal: str = ""
    prequential: float | None = None
    id: str = ""
    """The run's identity when it was made; left out: its identity now."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """The settings that the run does not name, and what they were when it was made."""

    def __post_init__(self) -> None:
        if not self.id:
            named = self.run.settings
            rest = {k: v for k, v in defaults(self.run.learner).items() if k not in named}
            object.__setattr__(self, "defaults", rest)
            object.__setattr__(self, "id", self.run.id)

    @property
    def alpha(self) -> list[float]:
        """α_t of each event."""
        return [event.accuracy for event in self.events]

    @property
    def offline_alpha(self) -> list[float] | None:
        """α of Offline at each event, None where it was not asked for."""
        return [bound.accuracy for bound in self.offline] or None

    @property
    def mu_all(self) -> float:
        """Mean of α_t."""
        return metrics.mu_all(self.alpha)

    @property
    def omega_all(self) -> float | None:
        """Mean of α_t / α of the best reference at t; None without Offline."""
        if not self.offline:
            return None
        return metrics.omega_all(self.alpha, [bound.reference for bound in self.offline])

    @property
    def omega_paper(self) -> float | None:
        """Mean of α_t / α of Offline trained by SGD, as in the paper; None without Offline."""
        bounds = self.offline_alpha
        return None if bounds is None else metrics.omega_all(self.alpha, bounds)

    @property
    def ceiling(self) -> float | None:
        """Mean share of test frames whose class was shown before the test; None: not recorded."""
        shares = []
        for event in self.events:
            if event.reachable is None:
                return 1.0 if self.run.order.startswith("class-") else None
            shares.append(event.reachable / sum(frames for _, _, frames in event.by_video))
        return float(np.mean(shares))

    @property
    def reference(self) -> str:
        """The name of what Ω_all divides by: "sgd", a closed form, or "" without Offline."""
        return (self.offline[-1].best or "sgd") if self.offline else ""

    @property
    def table(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Accuracy of class k at event t [T, K], NaN where it was not under test."""
        table = np.full((len(self.events), len(self.classes)), np.nan)
        for t, event in enumerate(self.events):
            for k, right, total in event.by_class:
                table[t, k] = right / total
        return table

    @property
    def steps_per_second(self) -> float:
        """Learning steps per second of learning, without G and tests."""
        return self.learned / self.learn_seconds if self.learn_seconds > 0 else 0.0

    def summary(self) -> dict[str, Any]:
        """What ``verse run --json`` prints."""
        run = self.run
        return {
            "run": self.id,
            "dataset": run.dataset,
            "learner": run.learner,
            "order": run.order,
            "seed": run.seed,
            "backbone": run.backbone,
            "capacity": self.capacity,
            "alpha": self.alpha,
            "mu_all": self.mu_all,
            "omega_all": self.omega_all,
            "omega_paper": self.omega_paper,
            "reference": self.reference,
            "ceiling": self.ceiling,
            "offline_alpha": self.offline_alpha,
            "final_accuracy": self.alpha[-1],
            "steps": self.learned,
            "steps_per_second": self.steps_per_second,
            "memory_bytes": self.memory_bytes,
            "classes": list(self.classes),
            "forgetting": metrics.forgetting(self.table),
            "backward_transfer": metrics.backward_transfer(self.table),
            "prequential": self.prequential,
            "share_learned": self.learned / self.frames,
            "missed": self.missed,
            "refused": self.refused,
            "unreadable": self.unreadable,
            "gate_passed": all(bound.sound for bound in self.offline) if self.offline else None,
        }


def collect_counters(so_far: SoFar) -> dict[str, Any]:
    """The counters of a stream under the names a result has."""
    return {
        "events": tuple(so_far.tested),
        "learned": so_far.learned,
        "refused": so_far.refused,
        "missed": so_far.missed,
        "learn_seconds": so_far.learn_seconds,
        "first_refusal": so_far.first_refusal,
        "prequential": so_far.answered_right / so_far.answered if so_far.answered else None,
    }
