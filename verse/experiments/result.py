"""What a finished run leaves behind: one small JSON document, enough for every table and figure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from verse import metrics
from verse.checkpoint import write_atomic
from verse.evaluate import SoFar, Tested
from verse.experiments.run import Run
from verse.types import BadState

FORMAT = 1


@dataclass(frozen=True)
class Bound:
    """Offline at one test event, and the closed-form classifiers it must not fall behind.

    >>> Bound(0.9, 0.85, 0.8, 12, True, []).sound
    True
    """

    accuracy: float
    ridge: float
    lda: float
    epochs: int
    flat: bool
    by_video: list[list[int]]

    @property
    def sound(self) -> bool:
        """Offline is at least as good as one of them; otherwise it is broken."""
        return self.accuracy >= min(self.ridge, self.lda)


@dataclass(frozen=True)
class Result:
    """A run and its numbers.

    ``events`` are the test events with their counts by class and by video; ``offline`` is one bound
    per event, or empty. ``circumstances`` are versions, threads and machine.

    >>> tested = Tested(4, [0, 1], 0.75, [[0, 2, 2], [1, 1, 2]], [[5, 3, 4]], [], seconds=0.1)
    >>> result = Result(
    ...     run=Run("tabletop"), classes=("cup", "mug"), split="", fingerprint="", frames=4,
    ...     test_frames=4, events=(tested,), offline=(Bound(1.0, 1.0, 1.0, 10, True, []),),
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
        """Mean of α_t / α_offline,t, None without Offline."""
        bounds = self.offline_alpha
        return None if bounds is None else metrics.omega_all(self.alpha, bounds)

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
            "run": run.id,
            "dataset": run.dataset,
            "learner": run.learner,
            "order": run.order,
            "seed": run.seed,
            "backbone": run.backbone,
            "capacity": self.capacity,
            "alpha": self.alpha,
            "mu_all": self.mu_all,
            "omega_all": self.omega_all,
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

    def document(self) -> dict[str, Any]:
        """The whole record as plain JSON: the summary first, for people who open the file."""
        record = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("run", "events", "offline")
        }
        # the confusion of every event would be most of the file; the last one says enough
        events = [asdict(event) | {"confusion": []} for event in self.events[:-1]]
        return {
            "format": FORMAT,
            "summary": self.summary(),
            "spec": self.run.document(),
            "events": [*events, asdict(self.events[-1])],
            "offline": [asdict(bound) for bound in self.offline],
            "record": record,
        }

    def save(self, path: Path) -> None:
        """Write one JSON file, all or nothing."""
        write_document(path, self.document())

    @classmethod
    def load(cls, path: Path) -> Result:
        """Read what ``save`` wrote."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["format"] > FORMAT:
                raise BadState(f"{path} is of a newer verse: upgrade to read it")
            record = document["record"]
            return cls(
                run=Run.load(document["spec"]),
                events=tuple(Tested(**event) for event in document["events"]),
                offline=tuple(Bound(**bound) for bound in document["offline"]),
                **record | {"classes": tuple(record["classes"])},
            )
        except FileNotFoundError:
            raise BadState(f"there is no file {path}") from None
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise BadState(f"{path} is no result of a run, or damaged: {error!r}") from error


def write_document(path: Path, document: dict[str, Any]) -> None:
    """One line for each part of a result, so that files stay small and still can be read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = (f"{json.dumps(name)}: {compact(part)}" for name, part in document.items())
    write_atomic(path, ("{" + ",\n ".join(parts) + "}\n").encode())


def compact(part: object) -> str:
    """JSON without spaces."""
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"))


def curve(so_far: SoFar) -> dict[str, Any]:
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
